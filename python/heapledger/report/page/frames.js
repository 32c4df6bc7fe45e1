// frames.js: the frames of a graph, made from the tree's nodes when they are needed.
//
// A frame stands for one or several nodes (its members) at the same place. It has several if frames between them are
// hidden, or if stacks are read from their allocation up (inverted). If inverted, a member is a node whose own weight
// counts. Its cursor says how far up the stack it has been read. Children are made once, when they are needed, with the
// heaviest first. So the cost of a view depends on what is visible of it.
//
// Imports are a separate layer: one frame below the root, in which nothing is hidden.

class Frame {
  constructor(parent, location, layer) {
    this.parent = parent;
    this.location = location;
    this.layer = layer;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.members = [];
    this.cursors = null;
    this.weight = 0;
    this.before = 0;
    this.after = 0;
    this.children = null;
  }
}

class Frames {
  constructor(tree, weights, inverted, folding) {
    Object.assign(this, { tree, weights, inverted, folding });
    this.sums = this.sumsOf(weights);
    this.imports = folding.imports === null ? null : new Frame(null, folding.importsAt, 1);
    this.root = new Frame(null, 0, 0);
    this.fill(this.root);
    if (this.imports === null) return;
    this.imports.parent = this.root;
    this.imports.depth = 1;
    this.fill(this.imports);
    for (const what of ["weight", "before", "after"]) this.root[what] += this.imports[what];
  }

  // The weight of each node as a member, by layer: including everything below it, or, if inverted, only its own.
  sumsOf(weights) {
    const sums = (own, layer) => {
      if (own === undefined) return null;
      const kept = this.folding.ownOf(own, layer);
      return this.inverted ? kept : totalsOf(this.tree, kept);
    };
    return [0, 1].map((layer) => ({
      weight: sums(weights.own, layer),
      before: sums(weights.before, layer),
      after: sums(weights.after, layer),
    }));
  }

  // Fills the first frame of a layer.
  fill(frame) {
    if (!this.inverted) {
      this.add(frame, 0);
      return;
    }
    frame.cursors = [];
    const { weight } = this.sums[frame.layer];
    for (let node = 0; node < weight.length; node++) if (weight[node] > 0) this.add(frame, node, -1);
  }

  add(frame, node, cursor) {
    const { weight, before, after } = this.sums[frame.layer];
    frame.members.push(node);
    if (cursor !== undefined) frame.cursors.push(cursor);
    frame.weight += weight[node];
    if (before === null) return;
    frame.before += before[node];
    frame.after += after[node];
  }

  // The weight of a frame by other sums, such as those of its blocks.
  measure(frame, sums, what) {
    let sum = frame === this.root && this.imports ? this.measure(this.imports, sums, what) : 0;
    for (const node of frame.members) sum += sums[frame.layer][what][node];
    return sum;
  }

  childrenOf(frame) {
    if (frame.children === null) {
      const found = new Map();
      if (this.inverted) this.findCallers(frame, found);
      else this.findCalls(frame, found);
      const children = [...found.values()];
      if (frame === this.root && this.imports?.weight > 0) children.push(this.imports);
      frame.children = children.sort((a, b) => this.order(a, b));
    }
    return frame.children;
  }

  // The heaviest frame comes first. If only changes are shown, growth comes before everything else. Imports come last,
  // because users rarely look for them.
  order(a, b) {
    if (a === this.imports || b === this.imports) return a === this.imports ? 1 : -1;
    const signs = this.weights.onlyChanges ? Math.sign(b.after - b.before) - Math.sign(a.after - a.before) : 0;
    return signs || b.weight - a.weight || a.location - b.location;
  }

  childAt(frame, found, location) {
    let child = found.get(location);
    if (child === undefined) {
      child = new Frame(frame, location, frame.layer);
      if (this.inverted) child.cursors = [];
      found.set(location, child);
    }
    return child;
  }

  hides(frame, location) {
    return frame.layer === 0 && this.folding.hidden[location] === 1;
  }

  findCalls(frame, found) {
    const { firstChild, nextSibling, locations } = this.tree,
      { weight } = this.sums[frame.layer];
    const waiting = [...frame.members];
    while (waiting.length > 0) {
      for (let node = firstChild[waiting.pop()]; node !== 0; node = nextSibling[node]) {
        if (weight[node] === 0) continue;
        if (this.hides(frame, locations[node]))
          waiting.push(node); // its calls count for its caller
        else this.add(this.childAt(frame, found, locations[node]), node);
      }
    }
  }

  findCallers(frame, found) {
    const { parents, locations } = this.tree;
    for (let i = 0; i < frame.members.length; i++) {
      let cursor = frame.cursors[i] < 0 ? frame.members[i] : parents[frame.cursors[i]];
      while (cursor !== 0 && this.hides(frame, locations[cursor])) cursor = parents[cursor];
      if (cursor !== 0) this.add(this.childAt(frame, found, locations[cursor]), frame.members[i], cursor);
    }
  }

  // What the frame itself allocated. If inverted, the weight of the stacks whose oldest frame it is.
  ownWeight(frame) {
    let rest = frame.weight;
    for (const child of this.childrenOf(frame)) rest -= child.weight;
    return Math.max(rest, 0);
  }

  // Finds the frame of the heaviest stack through a location, with the callers first.
  heaviestAt(location) {
    const { locations, parents } = this.tree,
      { weight } = this.sums[0];
    let best = 0;
    for (let node = 1; node < locations.length; node++)
      if (locations[node] === location && (best === 0 || weight[node] > weight[best])) best = node;
    const path = [];
    for (let node = best; node !== 0; node = parents[node])
      if (!this.folding.hidden[locations[node]]) path.unshift(locations[node]);
    return this.find(path);
  }

  // Finds the frame at the end of a path of locations, or the last one that exists on the path.
  find(path) {
    let frame = this.root;
    for (const location of path) {
      const next = this.childrenOf(frame).find((child) => child.location === location);
      if (next === undefined) break;
      frame = next;
    }
    return frame;
  }
}

function pathOf(frame) {
  const path = [];
  for (let at = frame; at.parent !== null; at = at.parent) path.unshift(at);
  return path;
}
