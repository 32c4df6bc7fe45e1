// colours.js: the palette of page.css, and the colours that frames get from it.

const KIND_NAMES = {
  own: "the program",
  "site-packages": "installed packages",
  stdlib: "standard library",
  importlib: "imports",
  other: "made by exec, unknown",
  cut: "cut stacks",
};

class Colours {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    this.read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.dark = document.documentElement.dataset.theme === "dark";
    this.ink = this.read("frame-ink");
    this.card = this.read("card");
    this.root = this.read("root");
    this.match = this.read("match");
    this.focus = this.read("focus");
    this.soft = this.read("soft");
    this.faint = this.read("faint");
    this.known = new Map();
  }

  hsl(name) {
    const [hue, saturation, lightness] = this.read(name).replaceAll("%", "").split(" ").map(Number);
    return { hue, saturation, lightness };
  }

  // Each kind has one hue. Locations differ a little in shade, and a location always has the same shade.
  ofKind(kind, number) {
    const shade = (number * 2654435761) % 7;
    const key = `${kind}${shade}`;
    if (!this.known.has(key)) {
      const { hue, saturation, lightness } = this.hsl(kind);
      this.known.set(key, `hsl(${hue + (shade - 3) * 2.5} ${saturation}% ${lightness + (shade - 3) * 1.4}%)`);
    }
    return this.known.get(key);
  }

  // The colour is stronger if more of the frame is new or gone.
  ofChange(before, after) {
    const change = after - before,
      most = Math.max(before, after);
    if (change === 0 || most === 0) return `hsl(${this.read("same")})`;
    const share = Math.sqrt(Math.min(Math.abs(change) / most, 1));
    const { hue, saturation, lightness } = this.hsl(change > 0 ? "grew" : "shrank");
    const pale = this.dark ? 26 : 90;
    const step = Math.round(share * 12) / 12;
    return `hsl(${hue} ${saturation * (0.3 + 0.7 * step)}% ${pale + (lightness - pale) * step}%)`;
  }
}
