/** Where the nodes of a forest stand: columns by depth, rows by branch. Draws nothing. */

/**
 * Runs of nodes without a fork become one chain; a chain is drawn as one line of text.
 * Gives {chains: [{nodes, row, depth, parent}], rows}; `depth` counts chains.
 */
export function layout(nodes) {
  const children = new Map();
  const roots = [];
  const known = new Set(nodes.map((n) => n.id));
  for (const n of nodes) {
    if (n.parent === null || n.parent === undefined || !known.has(n.parent)) roots.push(n);
    else if (children.has(n.parent)) children.get(n.parent).push(n);
    else children.set(n.parent, [n]);
  }
  const chains = [];
  let row = 0;
  // An explicit stack: a text may be thousands of tokens long.
  const left = roots.map((n) => ({ first: n, parent: null, depth: 0 })).reverse();
  while (left.length) {
    const { first, parent, depth } = left.pop();
    const chain = { nodes: [first], parent, depth, row, index: chains.length };
    row += 1;
    chains.push(chain);
    let next = children.get(first.id) ?? [];
    while (next.length === 1) {
      chain.nodes.push(next[0]);
      next = children.get(next[0].id) ?? [];
    }
    for (const n of [...next].reverse()) left.push({ first: n, parent: chain.index, depth: depth + 1 });
  }
  return { chains, rows: row };
}
