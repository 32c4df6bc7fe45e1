// main.js: one object that knows what is shown and updates everything else.

class App {
  constructor(data) {
    this.data = data;
    this.names = new Names(data);
    this.tip = new Tip(this);
    this.graph = new Graph(this);
    this.keys = new GraphKeys(this, this.graph);
    this.table = new Table(this);
    this.fix = new Fix(this);
    this.timeline = new Timeline(this);
    this.controls = new Controls(this);
    this.state = null; // what is shown
    this.wanted = null; // what will be shown when its columns are loaded
    window.addEventListener("popstate", () => this.become(readAddress(data.header, location.hash)));
    window.addEventListener("hashchange", () => {
      if (location.hash !== writeAddress(data.header, this.wanted))
        this.become(readAddress(data.header, location.hash));
    });
  }

  update(changes) {
    const zooms = "zoom" in changes && String(changes.zoom) !== String(this.wanted.zoom);
    this.become({ ...this.wanted, ...changes });
    this.remember(writeAddress(this.data.header, this.wanted), zooms);
  }

  // The browser's Back button leaves a zoom. All other changes replace the current address.
  remember(address, zooms) {
    try {
      if (zooms) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch (error) {
      // A page inside another one, such as a notebook, cannot change the address.
      if (error.name !== "SecurityError") throw error;
    }
  }

  // The weights by a measure: the one of the view, or the other one.
  weightsOf(measure) {
    if (measure === this.state.measure) return this.weights;
    this.otherWeights ??= weigh(this.data, this.state, measure);
    return this.otherWeights;
  }

  // { weight, before, after } of a frame by a measure.
  amounts(frame, measure) {
    if (measure === this.state.measure) return frame;
    this.otherSums ??= this.frames.sumsOf(this.weightsOf(measure));
    const found = {};
    for (const what of this.weights.difference ? ["before", "after"] : ["weight"])
      found[what] = this.frames.measure(frame, this.otherSums, what);
    return found;
  }

  zoomTo(frame) {
    this.update({ zoom: pathOf(frame).map((one) => one.location) });
  }

  // Shows a state. This happens at once if all columns are loaded.
  become(state) {
    this.wanted = state;
    const missing = missingColumns(this.data, state);
    if (missing.length === 0) {
      this.show(state);
      return;
    }
    loadColumns(this.data, missing).then(() => {
      if (this.wanted === state) this.show(state);
    }, complain);
  }

  show(state) {
    const { state: before, data } = this;
    const differs = (...names) => before === null || names.some((name) => String(before[name]) !== String(state[name]));
    this.state = state;
    const weighs = differs("moment", "from", "to", "measure", "changes");
    if (weighs) {
      this.weights = weigh(data, state, state.measure);
      this.otherWeights = null;
    }
    const folds = differs("fold", "hide");
    if (folds) this.folding = new Folding(data.tree, this.names, state);
    const frames = weighs || folds || differs("view");
    if (frames) {
      this.frames = new Frames(data.tree, this.weights, state.view === "inverted", this.folding);
      this.otherSums = null;
    }
    if (frames || differs("zoom")) {
      this.zoomed = this.frames.find(state.zoom);
      this.graph.focused = null;
      this.graph.box.scrollTop = 0;
    }
    if (differs("search")) this.found = this.names.search(state.search);
    this.tip.hide();
    document.documentElement.dataset.ready = "true";
    this.controls.show();
    if (weighs) this.fix.show();
    this.graph.show();
    this.timeline.show();
    if (frames || differs("zoom", "group")) this.showTableSoon();
    else if (differs("search", "sort") && this.table.rows) this.table.fill();
  }

  // The graph is drawn at once. The table adds up the whole tree, so it follows after the graph is visible.
  showTableSoon() {
    clearTimeout(this.tableTimer);
    requestAnimationFrame(() => {
      clearTimeout(this.tableTimer);
      this.tableTimer = setTimeout(() => this.table.show());
    });
  }
}

function complain(error) {
  byId("empty").hidden = false;
  byId("graph").hidden = true;
  byId("empty").replaceChildren(element("strong", {}, "This report cannot be shown"), String(error.message ?? error));
}

async function start() {
  applyTheme(theme());
  const data = await loadData();
  new App(data).become(readAddress(data.header, location.hash));
}

start().catch(complain);
