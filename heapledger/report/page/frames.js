// frames.js: the frames that a graph shows, made of the tree's nodes when somebody looks at them.
//
// A frame stands for one or several nodes (its members) at the same place: several where frames between them are
// hidden, or where stacks are read from their allocation up (inverted). Then a member is a node whose own weight
// counts, and its cursor is how far up the stack it has been read. Children are made once, on demand, the heaviest
// first, so a view costs as much as is seen of it.

class Frame {
  constructor(parent, location) {
    this.parent = parent;
    this.location = location;
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
  constructor(tree, weights, inverted, hidden) {
    Object.assign(this, { tree, weights, inverted, hidden });
    this.root = inverted ? this.allocations() : this.wholeTree();
  }

  wholeTree() {
    const root = new Frame(null, 0);
    this.addNode(root, 0);
    return root;
  }

  allocations() {
    const root = new Frame(null, 0),
      { own } = this.weights;
    root.cursors = [];
    for (let node = 0; node < own.length; node++) if (own[node] > 0) this.addStack(root, node, -1);
    return root;
  }

  addNode(frame, node) {
    const { weights } = this;
    frame.members.push(node);
    frame.weight += weights.total[node];
    if (weights.difference) {
      frame.before += weights.totalBefore[node];
      frame.after += weights.totalAfter[node];
    }
  }

  addStack(frame, node, cursor) {
    const { weights } = this;
    frame.members.push(node);
    frame.cursors.push(cursor);
    frame.weight += weights.own[node];
    if (weights.difference) {
      frame.before += weights.ownBefore[node];
      frame.after += weights.ownAfter[node];
    }
  }

  childrenOf(frame) {
    if (frame.children === null) {
      const found = new Map();
      if (this.inverted) this.findCallers(frame, found);
      else this.findCalls(frame, found);
      frame.children = [...found.values()].sort((a, b) => b.weight - a.weight || a.location - b.location);
    }
    return frame.children;
  }

  childAt(frame, found, location) {
    let child = found.get(location);
    if (child === undefined) {
      child = new Frame(frame, location);
      if (this.inverted) child.cursors = [];
      found.set(location, child);
    }
    return child;
  }

  findCalls(frame, found) {
    const { firstChild, nextSibling, locations } = this.tree,
      { total } = this.weights;
    const waiting = [...frame.members];
    while (waiting.length > 0) {
      for (let node = firstChild[waiting.pop()]; node !== 0; node = nextSibling[node]) {
        if (total[node] === 0) continue;
        if (this.hidden[locations[node]])
          waiting.push(node); // its calls are its caller's
        else this.addNode(this.childAt(frame, found, locations[node]), node);
      }
    }
  }

  findCallers(frame, found) {
    const { parents, locations } = this.tree;
    for (let i = 0; i < frame.members.length; i++) {
      let cursor = frame.cursors[i] < 0 ? frame.members[i] : parents[frame.cursors[i]];
      while (cursor !== 0 && this.hidden[locations[cursor]]) cursor = parents[cursor];
      if (cursor !== 0) this.addStack(this.childAt(frame, found, locations[cursor]), frame.members[i], cursor);
    }
  }

  // What is allocated in the frame itself, or, inverted, what it was the oldest frame of.
  ownWeight(frame) {
    let rest = frame.weight;
    for (const child of this.childrenOf(frame)) rest -= child.weight;
    return Math.max(rest, 0);
  }

  // The frame at the end of a path of locations, or as far as it goes.
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
