// state.js: what is shown, as one object that is stored in the address: #view=inverted&zoom=3.17.204&search=…

const DEFAULTS = {
  view: "icicle",
  measure: "bytes",
  changes: "only",
  group: "function",
  search: "",
  sort: "",
  zoom: [],
  hide: [],
};

function initialState(header) {
  const last = header.captures.length - 1;
  return {
    ...DEFAULTS,
    moment: header.moments[0],
    fold: header.fold,
    from: header.mode === "difference" ? 0 : null,
    to: last,
  };
}

function wholeNumber(text, most) {
  const number = Number(text);
  return /^\d+$/.test(text) && number <= most ? number : null;
}

// Reads any address. Invalid values are ignored.
function readAddress(header, hash) {
  const given = new URLSearchParams(hash.replace(/^#/, "")),
    state = initialState(header);
  const last = header.captures.length - 1;
  const pick = (name, allowed) => {
    if (allowed.includes(given.get(name))) state[name] = given.get(name);
  };
  pick("view", ["icicle", "inverted"]);
  pick("measure", ["bytes", "blocks"]);
  pick("moment", header.moments);
  pick("changes", ["only", "all"]);
  for (const [name, options] of [
    ["group", GROUPS],
    ["fold", FOLDS],
  ])
    pick(
      name,
      options.map(([value]) => value),
    );
  state.search = given.get("search") ?? "";
  state.sort = given.get("sort") ?? "";
  state.hide = (given.get("hide") ?? "").split(",").filter((kind) => header.kinds.includes(kind));
  state.zoom = (given.get("zoom") ?? "")
    .split(".")
    .filter((text) => /^\d+$/.test(text))
    .map(Number);
  if (header.mode === "series") {
    const to = wholeNumber(given.get("to") ?? "", last),
      from = wholeNumber(given.get("from") ?? "", last);
    if (to !== null) state.to = to;
    if (from !== null && from < state.to) state.from = from;
  }
  return state;
}

function writeAddress(header, state) {
  const first = initialState(header),
    said = new URLSearchParams();
  for (const name of ["view", "measure", "moment", "fold", "changes", "group", "search", "sort"])
    if (state[name] !== first[name]) said.set(name, state[name]);
  if (state.hide.length > 0) said.set("hide", state.hide.join(","));
  if (state.zoom.length > 0) said.set("zoom", state.zoom.join("."));
  if (header.mode === "series") {
    if (state.to !== first.to) said.set("to", state.to);
    if (state.from !== null) said.set("from", state.from);
  }
  return `#${said}`;
}
