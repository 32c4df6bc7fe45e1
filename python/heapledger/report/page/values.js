// values.js: the weight of each node in the chosen view.
//
// own: the weight of the stacks that end at a node. A difference has two sides, before and after. If only changes are
// shown, the weight of a stack is the amount by which it grew or shrank. So the largest change is widest. Otherwise the
// weight is the larger of both sides. So you see what vanished and what is new. In both cases widths add up.

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

function sumOf(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

// { difference, own, onlyChanges, before, after }. The last three exist only in a difference.
function weigh(data, state, measure) {
  const after = ownValues(data, state.moment, state.to, measure);
  if (state.from === null) return { difference: false, own: after };
  const before = ownValues(data, state.moment, state.from, measure);
  const own = new Float64Array(after.length),
    onlyChanges = state.changes === "only";
  for (let node = 0; node < own.length; node++)
    own[node] = onlyChanges ? Math.abs(after[node] - before[node]) : Math.max(before[node], after[node]);
  return { difference: true, own, onlyChanges, before, after };
}
