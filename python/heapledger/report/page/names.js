// names.js: the names of locations, what they belong to, and which of them a search finds.

class Names {
  constructor(data) {
    this.header = data.header;
    this.places = data.places;
    this.count = data.places.file.length;
    this.imports = this.count; // the location of the frame for all imports
    this.texts = null;
  }

  file(location) {
    return this.header.files[this.places.file[location]];
  }
  line(location) {
    return this.places.line[location];
  }
  functionName(location) {
    return this.header.functions[this.places.function[location]];
  }
  source(location) {
    return this.header.sources[this.places.source[location]] ?? "";
  }
  kind(location) {
    if (location === 0) return "";
    if (location === this.imports) return "importlib";
    return this.header.kinds[this.header.kindOfFile[this.places.file[location]]];
  }
  package(location) {
    return this.header.packageOfFile[this.places.file[location]];
  }

  // Finds for each location the first location of the same line. A comprehension may be a function of its own.
  lines() {
    const first = new Map(),
      lines = new Int32Array(this.count);
    for (let location = 1; location < this.count; location++) {
      const key = `${this.places.file[location]}:${this.places.line[location]}`;
      if (!first.has(key)) first.set(key, location);
      lines[location] = first.get(key);
    }
    return lines;
  }

  // A number that chooses the shade of a location's colour.
  shade(location) {
    return location === this.imports ? 0 : this.places.function[location] + location;
  }

  // The name of the function, or the file if the function is not known.
  label(location) {
    if (location === 0) return "all";
    if (location === this.imports) return "imports";
    return this.functionName(location) || shortFile(this.file(location));
  }

  place(location) {
    if (location === 0 || location === this.imports || this.kind(location) === "cut") return "";
    return `${this.file(location)}:${this.line(location)}`;
  }

  // A byte for each location: 1 if its kind is one of `kinds`.
  ofKinds(kinds) {
    const found = new Uint8Array(this.count);
    for (let location = 1; location < this.count; location++) found[location] = kinds.has(this.kind(location)) ? 1 : 0;
    return found;
  }

  // A byte for each location, or null if there is nothing to search for.
  search(text) {
    const accepts = matcher(text);
    if (accepts === null) return null;
    if (this.texts === null) {
      this.texts = [""];
      for (let location = 1; location < this.count; location++)
        this.texts.push(`${this.functionName(location)} ${this.place(location)} ${this.source(location)}`);
    }
    const found = new Uint8Array(this.count);
    for (let location = 1; location < this.count; location++) found[location] = accepts(this.texts[location]) ? 1 : 0;
    return found;
  }
}

// All words must occur, in upper or lower case. Text between slashes is a regular expression.
function matcher(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (trimmed.length > 2 && trimmed.startsWith("/") && trimmed.endsWith("/")) {
    try {
      const pattern = new RegExp(trimmed.slice(1, -1), "i");
      return (name) => pattern.test(name);
    } catch {
      return () => false;
    }
  }
  const words = trimmed.toLowerCase().split(/\s+/);
  return (name) => {
    const lowered = name.toLowerCase();
    return words.every((word) => lowered.includes(word));
  };
}

// The weight of all stacks that contain a found frame.
function weightOfMatch(tree, found, weights) {
  const covered = new Uint8Array(tree.count);
  let weight = 0;
  for (let node = 1; node < tree.count; node++) {
    covered[node] = covered[tree.parents[node]] | found[tree.locations[node]];
    if (covered[node]) weight += weights.own[node];
  }
  return weight;
}
