"""The page before a recording is open, and while one is solved."""

import pytest
import samples

import marey


@pytest.fixture(scope="module")
def tab(open_tab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    with marey.view(folder, browser=False, block=False) as viewer:
        yield open_tab(viewer.url)


def test_an_empty_page_invites(tab):
    assert tab.page.get_by_role("heading", name="Drop a recording here").is_visible()
    tab.until("document.querySelector('.files').hidden")  # the folder is empty
    for hidden in (".timeline", ".right"):
        assert not tab.page.locator(hidden).is_visible()


def test_a_wrong_file_is_refused_by_its_name_until_another_is_opened(tab, tmp_path):
    (tmp_path / "odd.c3d").write_text("this is no recording")
    chooser = tab.page.get_by_label("Recording to open")
    chooser.set_input_files(tmp_path / "odd.c3d")
    refused = tab.page.get_by_role("alert")
    tab.until("!document.querySelector('.refused').hidden", 300)
    assert refused.inner_text().startswith("odd.c3d: expected")
    assert tab.page.locator(".welcome").is_visible()
    (tmp_path / "odder.c3d").write_text("nor is this")
    chooser.set_input_files(tmp_path / "odder.c3d")
    tab.until(
        "document.querySelector('.refused').textContent.startsWith('odder.c3d')", 300
    )


def test_a_chosen_file_is_opened(tab, tmp_path):
    marey.write(samples.motion(12), tmp_path / "chosen.bvh")
    tab.page.get_by_label("Recording to open").set_input_files(tmp_path / "chosen.bvh")
    tab.until("marey.snapshot().title === 'chosen.bvh'", 300)
    assert not tab.page.locator(".welcome").is_visible()
    assert not tab.page.locator(".refused").is_visible()
    assert tab.page.locator(".timeline").is_visible()


def test_a_generated_performer_is_solved_with_its_stages_shown(open_tab, tmp_path):
    watch = """const seen = [];
      new MutationObserver(() => {
        for (const item of document.querySelectorAll('.progress li.now span'))
          if (seen.at(-1) !== item.textContent) seen.push(item.textContent);
      }).observe(document, { subtree: true, childList: true });
      window.seen = seen;"""
    with marey.view(tmp_path, browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, script=watch)
        tab.page.get_by_role("button", name="Show me a generated performer").click()
        tab.until("marey.snapshot().title === 'generated_walk.c3d'", 300)
        tab.until("document.querySelectorAll('.row.joint').length > 20", 300)
        tab.until("document.querySelector('.progress').hidden")
        names = tab.page.locator(".row.joint .text").all_text_contents()
    assert {"Hips", "LeftLowerLeg", "Neck", "RightShoulder"} <= set(names)
    seen = tab.ask("window.seen")
    assert {"generate", "read", "calibrate", "pose"} <= set(seen)
    assert seen.index("generate") < seen.index("read") < seen.index("calibrate")
    assert seen.index("calibrate") < seen.index("pose")
    assert tab.error_messages == []
