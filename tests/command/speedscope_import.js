// Give a file to speedscope's own importer, as the npm package has it: a bundle for browsers, whose importer is a
// module that it loads on demand. The bundle is run here without a page; a line before its last statement, which would
// draw the page, hands the importer out. Prints what it made of the file, as JSON.
//
//     node speedscope_import.js FOLDER-OF-THE-PACKAGE FILE
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, filename] = process.argv.slice(2);
const release = path.join(folder, "dist", "release");
const bundle = fs.readdirSync(release).find((name) => /^speedscope-\w+\.js$/.test(name));
const source = fs.readFileSync(path.join(release, bundle), "utf8");

const loading = /Promise\.resolve\(\)\.then\(\(\)=>(\(\w+\(\),(\w+)\))\);/g;
const candidates = [...source.matchAll(loading)].filter(([, , name]) =>
    source.includes(`(${name},{importFromFileSystemDirectoryEntry:`));
const end = source.lastIndexOf("console.log(`speedscope v");
if (candidates.length !== 1 || end < 0) throw new Error("this version of speedscope is made in another way");
const patched = `${source.slice(0, end)}globalThis.importer=()=>${candidates[0][1]};})();`;

// Whatever the page would have: a thing that can be called and has every member.
const anything = new Proxy(function () {}, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "length" ? 0 : anything),
    set: () => true,
    apply: () => anything,
    construct: () => anything,
});
const page = { console: { ...console, log() {} }, TextDecoder, TextEncoder, setTimeout, clearTimeout, Uint8Array };
for (const name of ["document", "navigator", "localStorage", "history", "matchMedia", "addEventListener"])
    page[name] = anything;
page.location = { hash: "", href: "" };
page.window = page.self = page;
vm.runInNewContext(patched, page);

(async () => {
    const text = fs.readFileSync(filename, "utf8");
    const group = await page.importer().importProfileGroupFromText(path.basename(filename), text);
    if (!group) throw new Error("speedscope does not know this format");
    const profiles = group.profiles.map((profile) => {
        const frames = [];
        profile.forEachFrame((frame) => frames.push({ name: frame.name, file: frame.file, line: frame.line }));
        return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames };
    });
    console.log(JSON.stringify({ name: group.name, shown: group.indexToView, profiles }));
})();
