// decode.js: decodes the bytes from python/heapledger/report/_data.py into the call tree, as arrays.
//
// A tree has parents, locations, ends (the node after its last descendant), firstChild and nextSibling, each by node.
// Node 0 is the root. A column has nodes with their own bytes and blocks. These are all nodes, or only those that
// differ from the column before.

async function inflate(bytes) {
  if (!("DecompressionStream" in window)) throw new Error("This browser is too old: it needs DecompressionStream.");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function bytesOfText(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// Joins numbers from planes: first the lowest bytes of all numbers, then the next ones. Numbers above 2^53 are rounded.
function joinPlanes(bytes, at, length, width, type) {
  const numbers = new type(length);
  for (let plane = 0, factor = 1; plane < width; plane++, factor *= 256) {
    const first = at + plane * length;
    for (let i = 0; i < length; i++) numbers[i] += bytes[first + i] * factor;
  }
  return numbers;
}

class ArrayReader {
  constructor(bytes, at, shapes) {
    Object.assign(this, { bytes, at, shapes, next: 0 });
  }

  read(type) {
    const [length, width] = this.shapes[this.next++];
    const numbers = joinPlanes(this.bytes, this.at, length, width, type);
    this.at += length * width;
    return numbers;
  }
}

// Builds the links of the tree from the depths of its nodes in preorder.
function linkNodes(depths) {
  const count = depths.length;
  const parents = new Int32Array(count),
    ends = new Int32Array(count).fill(count);
  const firstChild = new Int32Array(count),
    nextSibling = new Int32Array(count);
  const path = [0]; // the last node of each depth
  for (let node = 1; node < count; node++) {
    const depth = depths[node];
    for (let above = path.length - 1; above >= depth; above--) ends[path[above]] = node;
    if (path.length > depth) nextSibling[path[depth]] = node;
    else firstChild[path[depth - 1]] = node;
    path.length = depth;
    path.push(node);
    parents[node] = path[depth - 1];
  }
  return { count, parents, ends, firstChild, nextSibling };
}

function readColumn(reader, whole) {
  const nodes = reader.read(Int32Array);
  for (let i = 1; i < nodes.length; i++) nodes[i] += nodes[i - 1];
  return { whole, nodes, bytes: reader.read(Float64Array), blocks: reader.read(Float64Array) };
}

async function unwrap(compressed) {
  const bytes = await inflate(compressed);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { header, reader: new ArrayReader(bytes, 4 + length, header.arrays) };
}

// The columns are those of the header, by moment and then by capture. A column that must still be loaded is null.
async function decodeTree(compressed) {
  const { header, reader } = await unwrap(compressed);
  const tree = linkNodes(reader.read(Int32Array));
  tree.locations = reader.read(Int32Array);
  const places = {};
  for (const name of ["file", "line", "function", "source"]) places[name] = reader.read(Int32Array);
  const given = header.columns.map((whole) => readColumn(reader, whole));
  const width = header.captures.length;
  const columns = header.moments.map((_moment, row) =>
    header.captures.map((_capture, place) => given[row * width + place] ?? null),
  );
  return { header, tree, places, columns };
}

async function decodeColumn(compressed) {
  const { header, reader } = await unwrap(compressed);
  return readColumn(reader, header.columns[0]);
}
