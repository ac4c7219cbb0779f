// The search box: names and headings that hold all the words, those that begin with them first.
const box = document.getElementById("search"), found = document.getElementById("found");
function rank([text, , where], words) {
  const low = text.toLowerCase(), last = low.split("::").pop();
  if (!words.every((word) => (low + " " + where.toLowerCase()).includes(word))) return -1;
  const first = words[0];
  return last === first ? 0 : last.startsWith(first) ? 1 : low.includes(first) ? 2 : 3;
}
function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = !words.length;
  found.replaceChildren();
  if (!words.length) return;
  const hits = pages.map((page) => [rank(page, words), page]).filter(([r]) => r >= 0);
  hits.sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length);
  for (const [, [text, address, where]] of hits.slice(0, 30)) {
    const item = document.createElement("li"), link = document.createElement("a"), place = document.createElement("small");
    link.href = address;
    link.textContent = text;
    place.textContent = " " + where;
    item.append(link, place);
    found.append(item);
  }
  if (!hits.length) found.textContent = "Nothing found";
}
box.addEventListener("input", show);
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && found.querySelector("a")) location = found.querySelector("a").href;
  if (event.key === "Escape") (box.value = ""), show();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) event.preventDefault(), box.focus();
});
const asked = new URLSearchParams(location.search).get("q"); // names.html?q=matmul
if (asked) (box.value = asked), show();
