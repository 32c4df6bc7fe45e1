// table.js: the same weights by function, line, file or package.
//
// own: what the code allocated itself. total: what it or its callees allocated, counted once if it called itself. If
// the graph is zoomed, only stacks through the zoomed frame count. Code that is hidden in the graph has no row. As in
// the graph, its weight belongs to its caller, and all imports are one row.

const GROUPS = [
  ["function", "Functions"],
  ["line", "Lines"],
  ["file", "Files"],
  ["package", "Packages"],
];
const ROWS_AT_ONCE = 100;

// Maps locations to rows, and names the rows. The last two rows are for imports, and for what was called by no visible
// frame.
function groupLocations(names, group) {
  const keys = new Int32Array(names.count).fill(-1),
    labels = [],
    known = new Map();
  for (let location = 1; location < names.count; location++) {
    const file = names.file(location);
    const [shown, name, called] = [shownFile(file), names.label(location), names.functionName(location)];
    const [text, label, detail] =
      names.kind(location) === "cut"
        ? [name, name, ""]
        : {
            function: () => [`${called}\n${file}`, name, called ? shown : ""],
            line: () => [`${file}\n${names.line(location)}`, name, `${shown}:${names.line(location)}`],
            file: () => [file, shortFile(file), file],
            package: () => [names.package(location), names.package(location), KIND_NAMES[names.kind(location)]],
          }[group]();
    if (!known.has(text)) {
      known.set(text, labels.length);
      labels.push({ label, detail, location, source: "" });
    }
    const key = known.get(text);
    keys[location] = key;
    if (group === "line") labels[key].source = names.source(location);
  }
  labels.push({ label: "imports", detail: "what importing modules takes", location: names.imports, source: "" });
  labels.push({ label: "no frame that is shown", detail: "called by none", location: 0, source: "" });
  return { keys, labels };
}

// The own weights of stacks through a frame.
function restrict(tree, own, frame, inverted) {
  if (frame.parent === null) return own;
  const kept = new Float64Array(own.length);
  for (const node of frame.members)
    for (let i = node; i < (inverted ? node + 1 : tree.ends[node]); i++) kept[i] = own[i];
  return kept;
}

// The sums by row. Hidden locations have no row. Their own weight counts for the nearest caller that has one.
function sumByKey(tree, own, { keys, labels }, hidden) {
  const total = totalsOf(tree, own);
  const sums = { own: new Float64Array(labels.length), total: new Float64Array(labels.length) };
  const active = new Int32Array(labels.length),
    charged = new Int32Array(tree.count).fill(labels.length - 1),
    path = [];
  for (let node = 1; node < tree.count; node++) {
    while (path.length > 0 && tree.ends[path.at(-1)] <= node) active[keys[tree.locations[path.pop()]]]--;
    const location = tree.locations[node];
    if (hidden[location] === 1) {
      charged[node] = charged[tree.parents[node]];
    } else {
      const key = keys[location];
      charged[node] = key;
      if (active[key]++ === 0) sums.total[key] += total[node];
      path.push(node);
    }
    sums.own[charged[node]] += own[node];
  }
  sums.total[labels.length - 1] = sums.own[labels.length - 1];
  return sums;
}

class Table {
  constructor(app) {
    this.app = app;
    this.table = byId("table");
    this.groups = new Map();
    this.limit = ROWS_AT_ONCE;
    byId("more").addEventListener("click", () => {
      this.limit *= 4;
      this.fill();
    });
  }

  columns() {
    if (this.app.weights.difference)
      return [
        { id: "change", title: "Own change", value: (row) => row.own - row.ownBefore, change: true },
        { id: "before", title: "Own before", value: (row) => row.ownBefore },
        { id: "after", title: "Own after", value: (row) => row.own },
        { id: "totalChange", title: "Total change", value: (row) => row.total - row.totalBefore, change: true },
      ];
    return [
      { id: "own", title: "Own", value: (row) => row.own },
      { id: "ownShare", title: "Share", value: (row) => row.own, share: true },
      { id: "total", title: "Total", value: (row) => row.total },
      { id: "totalShare", title: "Share", value: (row) => row.total, share: true },
    ];
  }

  // The sums of the rows, for one side of a difference or for everything.
  sums(own, grouped) {
    const { data, state, zoomed, frames } = this.app,
      { folding } = frames,
      inverted = state.view === "inverted";
    const hidden = zoomed.layer === 0 ? folding.hidden : new Uint8Array(folding.hidden.length);
    const kept = restrict(data.tree, folding.ownOf(own, zoomed.layer), zoomed, inverted);
    const sums = sumByKey(data.tree, kept, grouped, hidden);
    if (zoomed === frames.root) {
      const imports = grouped.labels.length - 2;
      sums.own[imports] = sums.total[imports] = sumOf(folding.ownOf(own, 1));
    }
    return sums;
  }

  // Computes the sums again, then fills the table.
  show() {
    const { state, weights, names } = this.app;
    if (!this.groups.has(state.group)) this.groups.set(state.group, groupLocations(names, state.group));
    const grouped = this.groups.get(state.group);
    const after = this.sums(weights.difference ? weights.after : weights.own, grouped);
    const before = weights.difference ? this.sums(weights.before, grouped) : null;
    this.rows = [];
    for (let key = 0; key < grouped.labels.length; key++) {
      const row = { ...grouped.labels[key], own: after.own[key], total: after.total[key] };
      if (before) Object.assign(row, { ownBefore: before.own[key], totalBefore: before.total[key] });
      if (this.isShown(row)) this.rows.push(row);
    }
    this.limit = ROWS_AT_ONCE;
    this.fill();
  }

  isShown(row) {
    const { weights, state } = this.app;
    if (weights.difference && state.changes === "only")
      return row.own !== row.ownBefore || row.total !== row.totalBefore;
    return row.total > 0 || row.totalBefore > 0;
  }

  // The column and the direction of the state. Its sort is "column", or "-column" to begin with the least.
  order() {
    const columns = this.columns(),
      [, minus, id] = /^(-?)(.*)$/.exec(this.app.state.sort);
    const column = id === "name" ? { id: "name" } : (columns.find((one) => one.id === id) ?? columns[0]);
    return { column, up: minus === "-" };
  }

  sorted() {
    const { column, up } = this.order(),
      direction = up ? 1 : -1;
    if (column.id === "name") return [...this.rows].sort((a, b) => -direction * a.label.localeCompare(b.label));
    return [...this.rows].sort(
      (a, b) => direction * (column.value(a) - column.value(b)) || a.label.localeCompare(b.label),
    );
  }

  fill() {
    const { app } = this,
      { column: by, up } = this.order(),
      columns = this.columns();
    const found = app.found,
      rows = this.sorted().filter((row) => found === null || found[row.location] === 1 || this.hasMatch(row));
    const head = element("tr");
    for (const column of [
      ...columns,
      { id: "name", title: GROUPS.find(([id]) => id === app.state.group)[1].replace(/s$/, "") },
    ]) {
      const sorted = column.id === by.id ? (up ? "ascending" : "descending") : "none";
      const arrow = sorted === "none" ? "" : up ? " ↑" : " ↓";
      head.append(
        element(
          "th",
          { "aria-sort": sorted, scope: "col", class: column.id },
          element(
            "button",
            { type: "button", "data-key": column.id, onclick: () => this.sortBy(column.id) },
            column.title + arrow,
          ),
        ),
      );
    }
    refill(this.table.tHead, head);
    const most = Math.max(...rows.map((row) => Math.abs(columns[0].value(row))), 1);
    this.table.tBodies[0].replaceChildren(...rows.slice(0, this.limit).map((row) => this.row(row, columns, most)));
    byId("more").hidden = rows.length <= this.limit;
    byId("table-hint").textContent = this.hint(rows.length);
  }

  hint(count) {
    const { app } = this;
    const where = app.zoomed.depth > 0 ? `, in stacks through ${plainText(app.names.label(app.zoomed.location))}` : "";
    const which = app.weights.difference && app.state.changes === "only" ? " changed" : "";
    return `${countText(count)} row${count === 1 ? "" : "s"}${which}${app.found ? " found" : ""}${where}`;
  }

  hasMatch(row) {
    const { keys } = this.groups.get(this.app.state.group),
      key = keys[row.location];
    this.matchedKeys ??= new Set();
    if (this.matchedFor !== this.app.found || this.matchedGroup !== this.app.state.group) {
      this.matchedKeys = new Set();
      for (let location = 1; location < keys.length; location++)
        if (this.app.found[location]) this.matchedKeys.add(keys[location]);
      this.matchedFor = this.app.found;
      this.matchedGroup = this.app.state.group;
    }
    return this.matchedKeys.has(key);
  }

  // A bar beside a number. They never overlap.
  barCell(column, part, name, text) {
    const bar = element("i", { class: name });
    bar.style.width = `${100 * Math.min(part, 1)}%`;
    return element(
      "td",
      { class: column.id },
      element("div", { class: "share" }, element("span", { class: "track" }, bar), element("span", {}, text)),
    );
  }

  cell(column, value, most) {
    const { app } = this,
      { measure } = app.state;
    if (column.share) {
      const part = app.zoomed.weight > 0 ? value / app.zoomed.weight : 0;
      return this.barCell(column, part, null, shareText(value, app.zoomed.weight));
    }
    if (column.id === "change")
      return this.barCell(column, Math.abs(value) / most, value > 0 ? "grew" : "shrank", changeText(value, measure));
    return element("td", { class: column.id }, column.change ? changeText(value, measure) : amountText(value, measure));
  }

  look(row) {
    const { app } = this;
    if (row.location === app.names.imports) app.zoomTo(app.frames.imports);
    else app.update({ search: row.label });
  }

  row(row, columns, most) {
    const { app } = this,
      line = element("tr");
    for (const column of columns) line.append(this.cell(column, column.value(row), most));
    const isFrame = row.location !== 0,
      label = plainText(row.label),
      file = isFrame && row.location !== app.names.imports ? plainText(app.names.place(row.location)) : "";
    const name = isFrame
      ? element("button", { type: "button", title: "Find in the graph", onclick: () => this.look(row) }, label)
      : element("span", {}, label);
    line.append(
      element(
        "td",
        { class: "name" },
        name,
        " ",
        element("small", { title: file }, plainText(row.detail)),
        ...(row.source ? [" ", element("code", { title: plainText(row.source) }, plainText(row.source))] : []),
      ),
    );
    return line;
  }

  sortBy(id) {
    const { column, up } = this.order();
    this.app.update({ sort: column.id === id && !up ? `-${id}` : id });
  }
}
