// fix.js: where to begin. These are the lines of the program's own code that hold most, or have grown most, including
// everything that their callees allocated. Imports are left out. command/_fix.py does the same for `heapledger
// summary`.

const LINES_TO_FIX = 5;
const FIX_TITLES = {
  live: "that hold most",
  peak: "that held most at the peak",
  allocated: "that have allocated most",
};

class Fix {
  constructor(app) {
    this.app = app;
    this.box = byId("fix");
    this.owners = null;
  }

  // Finds for each node the line that it is charged to. If the program has no code of its own, this is the line that
  // allocated.
  find() {
    const { data, names } = this.app,
      { tree } = data;
    this.owners = findOwners(tree, names);
    this.isOwn = names.header.kindOfFile.some((kind) => names.header.kinds[kind] === "own");
    if (this.isOwn) return;
    const lines = names.lines();
    for (let node = 1; node < tree.count; node++) {
      const location = tree.locations[node];
      if (this.owners[node] === 0 && names.kind(location) !== "cut") this.owners[node] = lines[location];
    }
  }

  sums(own) {
    const sums = new Float64Array(this.app.names.count + 1);
    for (let node = 0; node < own.length; node++) sums[this.owners[node]] += own[node];
    return sums;
  }

  // { bytes, blocks } by location. In a difference, these are the changes.
  amounts() {
    const amounts = {};
    for (const measure of ["bytes", "blocks"]) {
      const { difference, own, before, after } = this.app.weightsOf(measure);
      amounts[measure] = this.sums(difference ? after : own);
      if (difference) this.sums(before).forEach((value, location) => (amounts[measure][location] -= value));
    }
    return amounts;
  }

  show() {
    if (this.owners === null) this.find();
    const { app } = this,
      { measure } = app.state,
      amounts = this.amounts(),
      value = amounts[measure];
    const lines = [];
    for (let location = 1; location < app.names.count; location++) if (value[location] > 0) lines.push(location);
    lines.sort((a, b) => value[b] - value[a] || a - b);
    const shown = lines.slice(0, LINES_TO_FIX),
      whole = this.whole(value);
    this.box.hidden = app.frames.root.weight === 0;
    byId("fix-title").textContent = this.title();
    byId("fix-lines").replaceChildren(...shown.map((location) => this.line(location, amounts, whole)));
    byId("fix-rest").textContent = this.rest(shown.length, value, whole);
  }

  // The total for shares: everything, or everything that has grown.
  whole(value) {
    if (!this.app.weights.difference) return sumOf(value);
    let grown = 0;
    for (const one of value) grown += Math.max(one, 0);
    return grown;
  }

  title() {
    const { weights, state } = this.app,
      which = this.isOwn ? "Lines of your code" : "Lines";
    return `${which} ${weights.difference ? "that have grown most" : FIX_TITLES[state.moment]}`;
  }

  rest(count, value, whole) {
    const { app } = this,
      { measure } = app.state,
      said = [];
    const text = (number) => (app.weights.difference ? changeText(number, measure) : amountText(number, measure));
    if (count === 0) said.push(`No line of your code ${app.weights.difference ? "has grown" : "is there"}`);
    if (!this.isOwn) said.push("None of these files is your own code");
    for (const [location, name] of [
      [app.names.imports, "imports"],
      [0, "no line of your code"],
    ])
      if (value[location] > 0) said.push(`${name}: ${text(value[location])}, ${shareText(value[location], whole)}`);
    return said.join(" · ");
  }

  line(location, amounts, whole) {
    const { app } = this,
      { names } = app,
      { measure } = app.state,
      { difference } = app.weights;
    const [bytes, blocks] = [amounts.bytes[location], amounts.blocks[location]];
    const text = difference ? changeText : amountText;
    const counted = difference ? blocksText(blocks, true) : `${blocksText(blocks)}, ${averageText(bytes, blocks)}`;
    const place = shortFile(shownFile(names.place(location)));
    const what = names.source(location) || names.functionName(location);
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", title: "Zoom to it in the graph", "data-key": location, onclick: () => this.go(location) },
        element("b", {}, text(amounts[measure][location], measure)),
        element("span", { class: "part" }, shareText(amounts[measure][location], whole)),
        element("span", { class: "where", title: plainText(names.place(location)) }, plainText(place)),
        element("span", { class: "what" }, element("code", {}, plainText(what))),
        element("span", { class: "count" }, counted),
      ),
    );
  }

  // Shows the heaviest stack through the line, with the callers first.
  go(location) {
    const { app } = this;
    app.update({ view: "icicle", zoom: [], search: "" });
    app.zoomTo(app.frames.heaviestAt(location));
    byId("graph").scrollIntoView({ block: "nearest" });
  }
}
