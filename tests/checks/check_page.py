#!/usr/bin/env python3
"""check_page.py - loaderbench's page in a real browser: as wide as the window, on a desk and on a phone.

usage: check_page.py LOADERBENCH

Headless Chromium shows the page in frames of 1280 and of 390 pixels (its own windows are no narrower than 500),
where a script added to a copy of the page reports its width. The data set's name is one long word, and so is the
command. A browser without a page that is too wide would prove nothing, so it is shown one, too.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1280, 390)
REPORT = """<script>addEventListener("load", () => parent.postMessage([innerWidth,
document.documentElement.scrollWidth, document.querySelectorAll("svg.chart").length], "*"))</script>"""
FRAMES = """<!DOCTYPE html><html><body><pre id="out"></pre><script>
addEventListener("message", event => { document.getElementById("out").textContent += event.data.join(" ") + ";" })
</script>%s</body></html>"""


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


def measure(browser, folder, page):
    """[(window, page, charts)] of that page, for each width."""
    copy = os.path.join(folder, "copy.html")
    frames = os.path.join(folder, "frames.html")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(page.replace("</body>", REPORT + "</body>"))
    with open(frames, "w", encoding="utf-8") as file:
        file.write(FRAMES % "".join(f'<iframe src="copy.html" style="border:0;width:{width}px;height:900px"></iframe>'
                                    for width in WIDTHS))
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
             f"--user-data-dir={folder}/profile", "--window-size=1400,1000", "--dump-dom", "file://" + frames]
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="out">([^<]*)</pre>', dom)
    rows = [tuple(map(int, row.split())) for row in found.group(1).split(";") if row] if found else []
    return sorted(rows, reverse=True)


def main():
    tool = os.path.realpath(sys.argv[1])
    browser = find_browser()
    if browser is None:
        print("check_page: SKIPPED: no Chromium here (apt-get install chromium): the page's width was not checked")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "a-data-set-with-quite-a-long-name-" * 5 + "<b>&-idx3-ubyte")
        with open(image, "wb") as file:
            file.write(bytes.fromhex("00000803") + (2000).to_bytes(4, "big") + 2 * (28).to_bytes(4, "big") +
                       bytes(2000 * 784))
        page_path = os.path.join(folder, "page.html")
        subprocess.run([tool, "--workers", "0,1,2,auto", "--pin-memory", "off,auto", "--batch-size", "64", "--repeats", "2",
                        "--seconds", "0.01", "--quiet", "--format", "html", "-o", page_path, "idx:" + image], check=True)
        with open(page_path, encoding="utf-8") as file:
            page = file.read()
        try:
            rows = measure(browser, folder, page)
            wide = measure(browser, folder, page.replace("</main>", '<div style="width:1500px">x</div></main>'))
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"check_page: SKIPPED: {browser} does not run here: {error}")
            return 77
    assert [row[0] for row in rows] == list(WIDTHS), rows
    assert all(window < width for window, width, _ in wide) and len(wide) == len(WIDTHS), wide
    for window, width, charts in rows:
        assert width <= window, f"the page is {width} pixels wide in a window of {window}"
        assert charts in (2, 4), charts
    print("; ".join(f"{width} of {window} pixels" for window, width, _ in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
