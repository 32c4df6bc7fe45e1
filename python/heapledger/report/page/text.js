// text.js: numbers and names for people. Text enters the page as text nodes only, never as markup.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// Formats like `size` in command/_text.py.
function bytesText(number) {
  const sign = number < 0 ? "−" : "";
  let rest = Math.abs(number),
    tenths,
    unit = 0;
  if (rest < 1024) return `${sign}${rest} B`;
  do {
    rest /= 1024;
    unit++;
    tenths = Math.round(10 * rest);
    if (tenths - 10 * rest === 0.5) tenths -= tenths % 2; // halves are rounded to the even number
  } while (tenths >= 10000 && unit < UNITS.length - 1);
  return `${sign}${(tenths / 10).toFixed(1)} ${UNITS[unit]}`;
}

function countText(number) {
  return `${number < 0 ? "−" : ""}${Math.abs(number).toLocaleString("en")}`;
}

function amountText(number, measure) {
  return measure === "bytes" ? bytesText(number) : countText(number);
}

function changeText(number, measure) {
  return number > 0 ? `+${amountText(number, measure)}` : amountText(number, measure);
}

function blocksText(number, sign = false) {
  return `${sign && number > 0 ? "+" : ""}${countText(number)} ${Math.abs(number) === 1 ? "block" : "blocks"}`;
}

function averageText(bytes, blocks) {
  return `${bytesText(Math.round(bytes / blocks))} on average`;
}

function shareText(part, whole) {
  if (!(whole > 0)) return "";
  const share = (100 * part) / whole;
  return `${share < 0.05 && share > 0 ? "<0.1" : share.toFixed(1)}%`;
}

// The name of a library's file, without the folder of the libraries.
function shownFile(name) {
  const found = /(?:\/(?:site|dist)-packages\/|\/lib(?:64)?\/python\d[\d.]*t?\/)(?!site-packages\/)(.+)$/.exec(name);
  return found === null ? name : found[1];
}

function shortFile(name) {
  const parts = name.split("/");
  return parts.length > 2 && !name.startsWith("<") ? parts.slice(-2).join("/") : name;
}

// Makes control characters visible, also marks that change the direction of writing. So the browser does not obey them.
function plainText(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
}

function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...content);
  return made;
}

// Replaces the content of an element. If the focused part comes again with the same data-key, it keeps the focus.
function refill(parent, ...content) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...content);
  if (key !== undefined) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function byId(id) {
  return document.getElementById(id);
}
