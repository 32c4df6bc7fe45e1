// folding.js: which code is shown, and which code memory is charged to.
//
//   nothing     everything is shown
//   imports     all imports are one frame, and frames of the import system are hidden elsewhere
//   libraries   like imports, and only the program's own frames are shown
//
// What a hidden frame has allocated belongs to its caller. command/_folding.py does the same for the commands.

const FOLDS = [
  ["libraries", "My code"],
  ["imports", "All code"],
  ["nothing", "Imports too"],
];

function hiddenKinds(header, fold, more) {
  const kinds = new Set(more);
  if (fold !== "nothing") kinds.add("importlib");
  if (fold === "libraries") for (const kind of header.kinds) if (kind !== "own" && kind !== "cut") kinds.add(kind);
  return kinds;
}

// A byte for each node: 1 if the import system is nearer on the stack than the program's own code.
function findImports(tree, names) {
  const found = new Uint8Array(tree.count),
    imports = names.ofKinds(new Set(["importlib"])),
    ends = names.ofKinds(new Set(["own", "cut"]));
  for (let node = 1; node < tree.count; node++) {
    const location = tree.locations[node];
    found[node] = imports[location] === 1 ? 1 : ends[location] === 1 ? 0 : found[tree.parents[node]];
  }
  return found;
}

// Finds for each node the line of the newest frame of the program's own code, names.imports, or 0. What is above a
// joint is a guess. So what is below it is not charged to a line above it.
function findOwners(tree, names) {
  const owners = new Int32Array(tree.count),
    lines = names.lines(),
    own = names.ofKinds(new Set(["own"])),
    imports = names.ofKinds(new Set(["importlib"])),
    cut = names.ofKinds(new Set(["cut"]));
  for (let node = 1; node < tree.count; node++) {
    const location = tree.locations[node];
    if (own[location] === 1) owners[node] = lines[location];
    else if (imports[location] === 1) owners[node] = names.imports;
    else if (cut[location] === 0) owners[node] = owners[tree.parents[node]];
  }
  return owners;
}

class Folding {
  constructor(tree, names, state) {
    this.hidden = names.ofKinds(hiddenKinds(names.header, state.fold, state.hide));
    this.imports = state.fold === "nothing" ? null : findImports(tree, names);
    this.importsAt = names.imports;
  }

  // The own weights of imports (layer 1), or of everything else (layer 0).
  ownOf(own, layer) {
    if (this.imports === null) return layer === 0 ? own : new Float64Array(own.length);
    const kept = new Float64Array(own.length);
    for (let node = 0; node < own.length; node++) if (this.imports[node] === layer) kept[node] = own[node];
    return kept;
  }
}
