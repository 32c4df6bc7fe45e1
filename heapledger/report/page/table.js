// table.js: the same weights by function, line, file or package.
//
// own: allocated there; total: allocated there or by what it called, counted once where it called itself. When the
// graph is zoomed, only stacks through the zoomed frame count.

const GROUPS = [
  ["function", "Functions"],
  ["line", "Lines"],
  ["file", "Files"],
  ["package", "Packages"],
];
const ROWS_AT_ONCE = 100;

// Locations -> rows, and what the rows are called.
function groupLocations(names, group) {
  const keys = new Int32Array(names.count).fill(-1),
    labels = [],
    known = new Map();
  for (let location = 1; location < names.count; location++) {
    const file = names.file(location);
    const [shown, name] = [shownFile(file), names.label(location)];
    const [text, label, detail] = {
      function: () => [`${names.functionName(location)}\n${file}`, name, names.functionName(location) ? shown : ""],
      line: () => [String(location), name, `${shown}:${names.line(location)}`],
      file: () => [file, shortFile(file), file],
      package: () => [names.package(location), names.package(location), KIND_NAMES[names.kind(location)]],
    }[group]();
    if (!known.has(text)) {
      known.set(text, labels.length);
      labels.push({ label, detail, location });
    }
    keys[location] = known.get(text);
  }
  return { keys, labels };
}

// The own weights of stacks through a frame.
function restrict(tree, own, frame, inverted) {
  if (frame.depth === 0) return own;
  const kept = new Float64Array(own.length);
  for (const node of frame.members)
    for (let i = node; i < (inverted ? node + 1 : tree.ends[node]); i++) kept[i] = own[i];
  return kept;
}

function sumByKey(tree, own, { keys, labels }) {
  const total = totalsOf(tree, own);
  const sums = { own: new Float64Array(labels.length), total: new Float64Array(labels.length) };
  const active = new Int32Array(labels.length),
    path = [];
  for (let node = 1; node < tree.count; node++) {
    while (path.length > 0 && tree.ends[path.at(-1)] <= node) active[keys[tree.locations[path.pop()]]]--;
    const key = keys[tree.locations[node]];
    if (active[key]++ === 0) sums.total[key] += total[node];
    sums.own[key] += own[node];
    path.push(node);
  }
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

  // Add up anew, then fill.
  show() {
    const { data, state, weights, zoomed, names } = this.app,
      inverted = state.view === "inverted";
    if (!this.groups.has(state.group)) this.groups.set(state.group, groupLocations(names, state.group));
    const grouped = this.groups.get(state.group);
    const sum = (own) => sumByKey(data.tree, restrict(data.tree, own, zoomed, inverted), grouped);
    const after = sum(weights.difference ? weights.ownAfter : weights.own);
    const before = weights.difference ? sum(weights.ownBefore) : null;
    this.rows = [];
    for (let key = 0; key < grouped.labels.length; key++) {
      const row = { ...grouped.labels[key], own: after.own[key], total: after.total[key] };
      if (before) Object.assign(row, { ownBefore: before.own[key], totalBefore: before.total[key] });
      if (row.total > 0 || row.totalBefore > 0) this.rows.push(row);
    }
    this.limit = ROWS_AT_ONCE;
    this.fill();
  }

  // The column and the direction that the state says; its sort is "column" or "-column", which begins with the least.
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
          { "aria-sort": sorted, scope: "col", class: column.id === "name" ? "name" : null },
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
    return `${countText(count)} row${count === 1 ? "" : "s"}${app.found ? " found" : ""}${where}`;
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

  row(row, columns, most) {
    const { app } = this,
      { measure } = app.state,
      line = element("tr");
    for (const column of columns) {
      const value = column.value(row);
      if (column.share) {
        const bar = element("i"),
          part = app.zoomed.weight > 0 ? value / app.zoomed.weight : 0;
        bar.style.width = `calc((100% - 90px) * ${Math.min(part, 1)})`;
        line.append(element("td", { class: "share" }, bar, element("span", {}, shareText(value, app.zoomed.weight))));
      } else if (column.id === "change") {
        const bar = element("i", { class: value > 0 ? "grew" : "shrank" });
        bar.style.width = `calc((100% - 110px) * ${Math.abs(value) / most})`;
        line.append(element("td", { class: "share" }, bar, element("span", {}, changeText(value, measure))));
      } else {
        line.append(element("td", {}, column.change ? changeText(value, measure) : amountText(value, measure)));
      }
    }
    const look = () => app.update({ search: row.label });
    line.append(
      element(
        "td",
        { class: "name" },
        element("button", { type: "button", title: "Find in the graph", onclick: look }, plainText(row.label)),
        element("small", { title: plainText(app.names.file(row.location)) }, plainText(row.detail)),
      ),
    );
    return line;
  }

  sortBy(id) {
    const { column, up } = this.order();
    this.app.update({ sort: column.id === id && !up ? `-${id}` : id });
  }
}
