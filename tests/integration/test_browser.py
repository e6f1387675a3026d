"""The dashboard in a real browser: from the start page to a job's charts, on what this machine really does."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytestmark = pytest.mark.browser

BURN = "while True: sum(range(1000))"
# 15 bytes is all a process's name can have. Where it is not escaped it makes an element and runs a script.
HOSTILE = "<svg onload=x>"
# PR_SET_NAME is 15, see prctl(2).
BURN_HOSTILE = f"import ctypes; ctypes.CDLL(None).prctl(15, {HOSTILE.encode()!r}, 0, 0, 0)\n{BURN}"
PATIENCE = 60_000

# Bokeh draws on canvases inside shadow trees. Counts the pixels of the CPU's colour that its line has.
BLUE_PIXELS = """
(plot) => {
  const inside = (root) => [...root.querySelectorAll("*")].flatMap(
    (element) => [element, ...(element.shadowRoot ? inside(element.shadowRoot) : [])]);
  let found = 0;
  for (const canvas of inside(plot).filter((element) => element.tagName === "CANVAS" && element.width > 0)) {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
      const near = Math.abs(data[at]) < 9 && Math.abs(data[at + 1] - 114) < 9 && Math.abs(data[at + 2] - 178) < 9;
      if (near && data[at + 3] > 100) found += 1;
    }
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(f"none of {', '.join(names)} is installed; in CI the browser tests may not be skipped")
    if path is None:
        pytest.skip(f"BROWSER TESTS DID NOT RUN: none of {', '.join(names)} is installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`jobsight up` as a user starts it; its address."""
    environment = {**os.environ, "JOBSIGHT_HOME": str(tmp_path_factory.mktemp("home"))}
    command = [sys.executable, "-m", "jobsight", "up", "--listen", "127.0.0.1:0", "--every", "1"]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        said = running.stdout.readline()
        address = re.search(r"http://\S+?:\d+", said)
        assert address, f"jobsight up said {said!r}"
        yield address[0]
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(30)
        running.stdout.close()


@contextmanager
def job(code: str) -> Iterator[str]:
    """A Python program in a session of its own; the id of the job it is."""
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        yield str(child.pid)
    finally:
        child.kill()
        child.wait()


@contextmanager
def clean_page(browser: Browser, server: str) -> Iterator[Page]:
    """A page that must not complain, and must not ask anybody but our server for anything."""
    context = browser.new_context(base_url=server, viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith((server, "blob:")) else complaints.append(sent.url))
    yield page
    context.close()
    assert complaints == []


def test_a_running_job_is_found_on_the_start_page_and_its_charts_are_drawn(browser: Browser, server: str) -> None:
    with job(BURN) as number, clean_page(browser, server) as page:
        page.goto("/")
        # The page brings itself up to date: nobody reloads it here.
        link = page.get_by_role("link", name=number, exact=True)
        expect(link).to_be_visible(timeout=PATIENCE)
        expect(page.locator("h1")).to_contain_text("1 machine")
        link.click()
        expect(page.locator("h1")).to_contain_text(number)
        expect(page.locator('#charts[data-rendered="true"]')).to_be_visible(timeout=PATIENCE)
        plot = page.locator("#chart-cpu .plot")
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 400
        assert box["height"] > 100
        # The line runs across the chart, so it has about as many pixels as the chart is wide.
        page.wait_for_function(
            f"(least) => ({BLUE_PIXELS})(document.querySelector('#chart-cpu .plot')) > least", arg=200
        )
        expect(page.locator("#chart-cpu .readout")).to_contain_text(re.compile(r"mean \d.* cores, peak \d"))


def test_a_hostile_program_name_is_shown_as_text_on_every_page(browser: Browser, server: str) -> None:
    with job(BURN_HOSTILE) as number, clean_page(browser, server) as page:
        page.goto("/")
        link = page.get_by_role("link", name=number, exact=True)
        expect(link).to_be_visible(timeout=PATIENCE)
        # It has another name until it gives itself this one, and the page is fresh only now and then.
        expect(page.get_by_role("cell", name=HOSTILE).first).to_be_visible(timeout=PATIENCE)
        page.goto(f"/jobs?text={number}")
        expect(page.get_by_role("cell", name=HOSTILE).first).to_be_visible()
        page.get_by_role("link", name=number, exact=True).click()
        expect(page.locator("h1")).to_contain_text(HOSTILE)
        expect(page.locator('#charts[data-rendered="true"]')).to_be_visible(timeout=PATIENCE)
        assert page.locator("main svg").count() == 0


def test_colours_are_switched_and_remembered(browser: Browser, server: str) -> None:
    with clean_page(browser, server) as page:
        page.emulate_media(color_scheme="light")
        page.goto("/jobs")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        switch = page.locator("#theme")
        while "dark" not in (switch.get_attribute("title") or ""):
            switch.click()
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark != light
        page.reload()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_filter_and_order_of_the_job_list_are_in_its_address(browser: Browser, server: str) -> None:
    with job(BURN) as number, job(BURN), clean_page(browser, server) as page:
        page.goto("/")
        expect(page.get_by_role("link", name=number, exact=True)).to_be_visible(timeout=PATIENCE)
        page.goto("/jobs?state=running")
        page.get_by_role("button", name="id", exact=True).click()
        page.get_by_role("button", name="id", exact=True).click()
        expect(page).to_have_url(re.compile(r"state=running&sort=id&order=descending"))
        ids = page.locator("tbody tr td:nth-child(2)").all_text_contents()
        assert len(ids) > 1
        assert ids == sorted(ids, key=int, reverse=True)
        page.locator(".filter input[name=text]").fill(number)
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile(rf"text={number}"))
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("th[aria-sort]")).to_have_attribute("data-name", "id")
