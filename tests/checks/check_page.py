#!/usr/bin/env python3
"""check_page.py - loaderbench's page in a real browser: what it shows, and as wide as the window, on a desk and on a phone.

usage: check_page.py LOADERBENCH

Headless Chromium shows the page in frames of 1280 and of 390 pixels (its own windows are no narrower than 500). A script
added to a copy pastes an older result into the page and reports what is there. The data set's name is one long word that
would end a script and start an image, and so is the command. A browser without a page that is too wide would prove
nothing, so it is shown one, too.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1280, 390)
BEGIN = '<script type="application/json" id="result">\n'
REPORT = """<script>addEventListener("load", () => {
const box = document.getElementById("old"), all = selector => document.querySelectorAll(selector).length;
box.value = %s; box.dispatchEvent(new Event("input"));
parent.postMessage(JSON.stringify({window: innerWidth, page: document.documentElement.scrollWidth, charts: all("svg.chart"),
  title: document.title, heading: document.querySelector("h1").textContent, images: all("img"), best: all("tr.best"),
  rows: all("[aria-label='All combinations'] tbody tr"), errors: all("td.error"),
  compared: document.getElementById("comparison").textContent, slower: all("span.SLOWER"), faster: all("span.faster")}), "*")
})</script>"""
FRAMES = """<!DOCTYPE html><html><body><pre id="out"></pre><script>
addEventListener("message", event => { document.getElementById("out").textContent += event.data + "\\n" })
</script>%s</body></html>"""


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


def look(browser, folder, page, old):
    """What each frame reports of that page, once the result `old` was pasted into it; the widest first."""
    copy = os.path.join(folder, "copy.html")
    frames = os.path.join(folder, "frames.html")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(page.replace("</body>", REPORT % json.dumps(old).replace("<", "\\u003c") + "</body>"))
    with open(frames, "w", encoding="utf-8") as file:
        file.write(FRAMES % "".join(f'<iframe src="copy.html" style="border:0;width:{width}px;height:900px"></iframe>'
                                    for width in WIDTHS))
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
             f"--user-data-dir={folder}/profile", "--window-size=1400,1000", "--dump-dom", "file://" + frames]
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="out">([^<]*)</pre>', dom)
    rows = [json.loads(line) for line in html.unescape(found.group(1)).split("\n") if line] if found else []
    return sorted(rows, key=lambda row: -row["window"])


def measure(tool, folder):
    """A page whose data set and command hold markup; and the name."""
    os.makedirs(os.path.join(folder, "a-data-set-with-quite-a-long-name-" * 5 + "<"))
    image = os.path.join(folder, "a-data-set-with-quite-a-long-name-" * 5 + "<", "script><img src=x onerror=stop()><b>&-idx3-ubyte")
    with open(image, "wb") as file:
        file.write(bytes.fromhex("00000803") + (2000).to_bytes(4, "big") + 2 * (28).to_bytes(4, "big") + bytes(2000 * 784))
    page_path = os.path.join(folder, "page.html")
    subprocess.run([tool, "--workers", "0,1,2,auto", "--pin-memory", "off,auto", "--batch-size", "64,300", "--repeats", "2",
                    "--seconds", "0.01", "--quiet", "--format", "html", "-o", page_path, "idx:" + image], check=True)
    with open(page_path, encoding="utf-8") as file:
        return file.read(), "idx:" + image


def rewrite(lines, divisor, left_out=None):
    """The same result without spread, at a part of its rates, without the cells of one batch size."""
    made = []
    for row in map(json.loads, lines):
        if row["kind"] == "cell" and row["batch_size"] == left_out:
            continue
        for key in list(row):
            if "samples_per_s" in key and row[key] is not None:
                row[key] = row[re.sub("_(min|max|low|high)$", "", key)] / divisor
        if "rates" in row:
            row["rates"] = [row["samples_per_s"]] * len(row["rates"])
        made.append(json.dumps(row).replace("<", "\\u003c"))
    return "\n".join(made) + "\n"


def check_shown(rows, name):
    assert [row["window"] for row in rows] == list(WIDTHS), rows
    for row in rows:
        assert row["page"] <= row["window"], f"the page is {row['page']} pixels wide in a window of {row['window']}"
        assert row["charts"] in (2, 4) and row["rows"] == 16 and row["best"] == 1 and row["errors"] == 0, row
        assert row["heading"] == name and row["title"] == "loaderbench: " + name and row["images"] == 0, row


def main():
    tool = os.path.realpath(sys.argv[1])
    browser = find_browser()
    if browser is None:
        print("check_page: SKIPPED: no Chromium here (apt-get install chromium): the page was not seen by a browser")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        page, name = measure(tool, folder)
        head, lines = page.split(BEGIN)
        lines, tail = lines.split("</script>", 1)
        lines = lines.splitlines()
        same, slow = rewrite(lines, 1), rewrite(lines, 10, 300)
        try:
            rows = look(browser, folder, head + BEGIN + same + "</script>" + tail, same)
            faster = look(browser, folder, head + BEGIN + same + "</script>" + tail, slow)
            slower = look(browser, folder, head + BEGIN + slow + "</script>" + tail, page.replace("\n".join(lines) + "\n", same))
            wide = look(browser, folder, page.replace("</main>", '</main><div style="width:1500px">x</div>'), "nothing")
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"check_page: SKIPPED: {browser} does not run here: {error}")
            return 77
    check_shown(rows, name)
    assert all(row["window"] < row["page"] for row in wide) and len(wide) == len(WIDTHS), wide
    assert all("no result of --format json" in row["compared"] for row in wide), wide
    # A result against itself, against a tenth of its rates without half of its cells, and the other way round (out of a page).
    for row in rows:
        assert ": 0 faster, 0 slower" in row["compared"] and row["slower"] == row["faster"] == 0, row
    for row in faster:
        assert row["faster"] in (8, 16) and row["slower"] == 0 and "in the new one alone: 8" in row["compared"], row
    for row in slower:
        assert row["slower"] in (8, 16) and row["faster"] == 0 and "in the old result alone: 8" in row["compared"], row
    print("; ".join(f"{row['page']} of {row['window']} pixels" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
