// main.js: one object that knows what is shown and brings everything else up to date.

class App {
  constructor(data) {
    this.data = data;
    this.names = new Names(data);
    this.tip = new Tip(this);
    this.graph = new Graph(this);
    this.keys = new GraphKeys(this, this.graph);
    this.table = new Table(this);
    this.timeline = new Timeline(this);
    this.controls = new Controls(this);
    this.state = null; // what is shown
    this.wanted = null; // what is to be shown once its columns are there
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

  // Back leads out of a zoom; everything else is a change to the same page.
  remember(address, zooms) {
    try {
      if (zooms) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    } catch (error) {
      // A page inside another one, such as a notebook's, has no address of its own to change.
      if (error.name !== "SecurityError") throw error;
    }
  }

  zoomTo(frame) {
    this.update({ zoom: pathOf(frame).map((one) => one.location) });
  }

  // Show a state, at once if all it needs is there.
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
    const weighs = differs("moment", "from", "to", "measure");
    if (weighs) this.weights = weigh(data, state);
    const frames = weighs || differs("view", "hide");
    if (frames)
      this.frames = new Frames(
        data.tree,
        this.weights,
        state.view === "inverted",
        this.names.ofKinds(new Set(state.hide)),
      );
    if (frames || differs("zoom")) {
      this.zoomed = this.frames.find(state.zoom);
      this.graph.focused = null;
      this.graph.box.scrollTop = 0;
    }
    if (differs("search")) this.found = this.names.search(state.search);
    this.tip.hide();
    document.documentElement.dataset.ready = "true";
    this.controls.show();
    this.graph.show();
    this.timeline.show();
    if (frames || differs("zoom", "group")) this.showTableSoon();
    else if (differs("search", "sort") && this.table.rows) this.table.fill();
  }

  // The graph answers at once; the table, which adds up the whole tree, when that has been seen.
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
