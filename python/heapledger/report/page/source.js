// source.js: where the data come from: the page itself, or, in pieces, the server of the page.

async function fetchPiece(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}; is heapledger open still running?`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function loadData() {
  if (document.documentElement.dataset.source === "served") return decodeTree(await fetchPiece("tree"));
  const text = byId("data");
  const data = await decodeTree(bytesOfText(text.textContent.trim()));
  text.remove(); // megabytes that are no longer needed
  return data;
}

// The columns that a view needs and that are not loaded yet.
function missingColumns(data, state) {
  const row = data.header.moments.indexOf(state.moment);
  const wanted = state.from === null ? [state.to] : [state.from, state.to];
  return wanted.filter((capture) => data.columns[row][capture] === null).map((capture) => ({ row, capture }));
}

async function loadColumns(data, columns) {
  await Promise.all(
    columns.map(async ({ row, capture }) => {
      data.columns[row][capture] = await decodeColumn(await fetchPiece(`column?moment=${row}&capture=${capture}`));
    }),
  );
}
