// graph_keys.js: the graph for keyboards and screen readers. It is a tree with one item, the focused frame.

class GraphKeys {
  constructor(app, graph) {
    this.app = app;
    this.graph = graph;
    this.item = byId("focused");
    graph.box.setAttribute("aria-activedescendant", "focused");
    graph.box.addEventListener("keydown", (event) => this.press(event));
    graph.box.addEventListener("focus", () => this.describe());
    graph.box.addEventListener("blur", () => graph.draw());
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { graph, app } = this,
      frame = graph.focused;
    const moves = {
      ArrowDown: () => this.move(app.frames.childrenOf(frame)[0]),
      ArrowUp: () => this.move(frame === app.zoomed ? null : frame.parent),
      ArrowLeft: () => this.move(this.sibling(frame, -1)),
      ArrowRight: () => this.move(this.sibling(frame, 1)),
      Home: () => this.move(app.zoomed),
      Enter: () => app.zoomTo(frame),
      " ": () => app.zoomTo(frame),
      Backspace: () => app.zoomTo(app.zoomed.parent ?? app.zoomed),
    };
    if (!(event.key in moves) || frame === null) return;
    event.preventDefault();
    moves[event.key]();
    this.describe();
  }

  sibling(frame, step) {
    if (frame === this.app.zoomed) return null;
    const all = this.app.frames.childrenOf(frame.parent);
    return all[all.indexOf(frame) + step];
  }

  // If a frame is too small to be visible, the graph zooms to its caller.
  move(frame) {
    if (!frame) return;
    const { graph, app } = this;
    if (!graph.isShown(frame)) app.zoomTo(frame.parent);
    graph.focused = frame;
    const y = (frame.depth - app.zoomed.depth) * ROW,
      { box } = graph;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW - box.clientHeight;
    graph.draw();
  }

  describe() {
    const { app, item, graph } = this,
      frame = graph.focused;
    if (frame === null) return;
    const { measure } = app.state,
      unit = measure === "blocks" ? " blocks" : "";
    const siblings = frame.parent === null ? [frame] : app.frames.childrenOf(frame.parent);
    const amount = app.weights.difference
      ? `${amountText(frame.before, measure)} before, ${amountText(frame.after, measure)}${unit} after, ` +
        changeText(frame.after - frame.before, measure)
      : `${amountText(frame.weight, measure)}${unit}, ${shareText(frame.weight, app.frames.root.weight)} of all`;
    const place = app.names.place(frame.location);
    item.setAttribute("aria-level", frame.depth + 1);
    item.setAttribute("aria-setsize", siblings.length);
    item.setAttribute("aria-posinset", siblings.indexOf(frame) + 1);
    item.setAttribute("aria-expanded", app.frames.childrenOf(frame).length > 0);
    item.setAttribute("aria-selected", "true");
    const source = app.names.source(frame.location);
    const said = [app.names.label(frame.location), place, source].filter(Boolean).join(", ");
    item.textContent = plainText(`${said}: ${amount}`);
    graph.draw();
  }
}
