// values.js: what each node weighs in the chosen view.
//
// own: of the stacks that end at a node; total: of all at or below it. In a difference there are two sides, before and
// after, and a stack weighs the larger of both: so widths add up, and what vanished is seen as well as what is new.

function ownValues(data, moment, capture, measure) {
  const own = new Float64Array(data.tree.count);
  const columns = data.columns[data.header.moments.indexOf(moment)];
  let first = capture;
  while (!columns[first].whole) first--;
  for (const column of columns.slice(first, capture + 1)) {
    const { nodes } = column;
    const values = column[measure];
    for (let k = 0; k < nodes.length; k++) own[nodes[k]] = values[k];
  }
  return own;
}

function totalOf(header, moment, capture, measure) {
  return header.totals[header.moments.indexOf(moment) * header.captures.length + capture][measure];
}

function totalsOf(tree, own) {
  const total = own.slice();
  for (let node = tree.count - 1; node > 0; node--) total[tree.parents[node]] += total[node];
  return total;
}

// { difference, own, total, ownBefore, totalBefore, ownAfter, totalAfter }; the last four in a difference only.
function weigh(data, state) {
  const after = ownValues(data, state.moment, state.to, state.measure);
  if (state.from === null) return { difference: false, own: after, total: totalsOf(data.tree, after) };
  const before = ownValues(data, state.moment, state.from, state.measure);
  const own = new Float64Array(after.length);
  for (let node = 0; node < own.length; node++) own[node] = Math.max(before[node], after[node]);
  return {
    difference: true,
    own,
    total: totalsOf(data.tree, own),
    ownBefore: before,
    totalBefore: totalsOf(data.tree, before),
    ownAfter: after,
    totalAfter: totalsOf(data.tree, after),
  };
}
