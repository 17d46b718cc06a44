"""Opening recordings from the page: from its list of files, and by dropping one."""

import base64

import pytest
import samples

import marey


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    for name in ("one.bvh", "two.bvh"):
        marey.write(samples.motion(30), folder / name)
    return folder


@pytest.fixture(scope="module")
def tab(open_tab, folder):
    with marey.view(folder / "one.bvh", browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, draws=False)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        yield tab


def title(tab):
    return tab.text(".file")


def test_a_click_on_a_file_of_the_folder_opens_it(tab):
    assert title(tab) == "one.bvh"
    if tab.page.locator(".files.shut").count():
        tab.page.get_by_role("button", name="Files").click()
    tab.page.locator(".file-row", has_text="two.bvh").click()
    tab.until("marey.snapshot().title === 'two.bvh'", 300)
    assert title(tab) == "two.bvh"
    chosen = "document.querySelector('.file-row.selected .text')"
    tab.until(f"{chosen}?.textContent === 'two.bvh'")


def test_a_file_dropped_on_the_page_is_opened(tab, folder):
    marey.write(samples.motion(12), folder / "elsewhere.bvh")
    content = base64.b64encode((folder / "elsewhere.bvh").read_bytes()).decode()
    tab.page.evaluate(
        """content => {
          const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));
          const data = new DataTransfer();
          data.items.add(new File([bytes], "dropped.bvh"));
          dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
        }""",
        content,
    )
    tab.until("marey.snapshot().title === 'dropped.bvh'", 300)
    assert tab.snapshot["frames"] == 12
    assert tab.error_messages == []


def test_what_cannot_be_read_is_refused_and_the_scene_stays(tab):
    before = title(tab)
    tab.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["this is no recording"], "odd.c3d"));
          dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
        }"""
    )
    tab.until("document.querySelector('.refused:not([hidden])')", 300)
    assert "odd.c3d" in tab.text(".refused")
    assert title(tab) == before
