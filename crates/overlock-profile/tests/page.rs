//! The page, as a browser draws it.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{LARGE, SMALL, profile};
use overlock_profile::{Profile, Shown, html};

fn page(profile: &Profile) -> String {
    let mut out = Vec::new();
    html::write(&mut out, profile, Shown::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// The document after its script has run. Fails if the browser has complained.
fn open(page: &str) -> Option<String> {
    open_in(page, 1300)
}

/// The same in a window of this width.
fn open_in(page: &str, width: u32) -> Option<String> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = browsers.into_iter().find(runs) else {
        println!("skipped: chromium is not installed");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--enable-logging=stderr")
        .arg(format!("--window-size={width},900"))
        .args(["--virtual-time-budget=5000", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-extensions", "--disable-dev-shm-usage"])
        .arg(user_data(dir.path()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let complaints: Vec<&str> = errors
        .lines()
        .filter(|line| line.contains(":CONSOLE"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn user_data(dir: &Path) -> String {
    format!("--user-data-dir={}", dir.join("browser").display())
}

/// The value of an attribute that the page's scripts have set.
fn attribute<'a>(document: &'a str, name: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("{name}=\"")).expect(name);
    rest.split_once('"').unwrap().0
}

#[test]
fn nothing_of_a_profile_is_markup_and_nothing_is_loaded() {
    let page = page(&profile(SMALL, 1.0));
    // The JSON's end and the script's.
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains(r#""\u003c/script>\u003cb>\"'&;"#));
    assert!(page.contains("default-src 'none'"));
    for loads in [" src=", "@import", "url(", "fetch(", "<link"] {
        assert!(!page.contains(loads), "{loads}");
    }
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http-equiv").count() + page.matches("http://www.w3.org/2000/svg").count()
    );
}

/// The figure is of an idle machine: the best of some runs on a busy one.
#[test]
fn ten_thousand_waits_are_drawn_in_a_second() {
    let page = page(&profile(LARGE, 1.0));
    let mut drawn_ms = f64::INFINITY;
    for _ in 0..5 {
        let Some(document) = open(&page) else { return };
        assert!(document.contains("waits for 158 locks."), "the summary");
        assert!(document.contains("10,000 waits</span>"), "the timeline");
        drawn_ms = drawn_ms.min(attribute(&document, "data-drawn-ms").parse().unwrap());
        if drawn_ms < 1000.0 {
            return;
        }
    }
    panic!("drawn in {drawn_ms} ms");
}

#[test]
fn keys_switches_and_clicks_work() {
    let driver = include_str!("page/driver.js");
    let page = page(&profile(SMALL, 1.0));
    // A browser without a window makes no frames.
    let frames = "<script>window.requestAnimationFrame = (f) => setTimeout(f, 0);</script>";
    let page = page.replacen("<title>", &format!("{frames}<title>"), 1);
    let (before, after) = page.rsplit_once("</body>").unwrap();
    let driven = format!("{before}<script type=\"module\">{driver}</script></body>{after}");
    let Some(document) = open(&driven) else {
        return;
    };
    assert_eq!(attribute(&document, "data-failed"), "", "see driver.js");
    assert_eq!(attribute(&document, "data-checked"), "yes");
}

/// Fails where a table is wider than the window, or the function that it should show is cut off.
#[test]
fn narrow_windows_show_what_tells_most() {
    let mut profile = profile(SMALL, 1.0);
    for frame in &mut profile.frames {
        let name = "shop::Shelf<std::map<std::string, int>>::".repeat(3);
        frame.function = format!("{name}{}(std::string const&)", frame.function);
    }
    let measure = "<script type=\"module\">const wide = (box) => box.scrollWidth - box.clientWidth;
        const boxes = [document.documentElement, ...document.querySelectorAll('.table')];
        document.body.dataset.wide = Math.max(...boxes.map(wide));</script>";
    let page = page(&profile);
    let (before, after) = page.rsplit_once("</body>").unwrap();
    let page = format!("{before}{measure}</body>{after}");
    // A window of chromium has at least 500 columns.
    for width in [1100, 800, 500] {
        let Some(document) = open_in(&page, width) else {
            return;
        };
        assert_eq!(attribute(&document, "data-wide"), "0", "{width}");
        let cell = document
            .split("<td class=\"name place\"")
            .find(|cell| cell.contains("</bdi>"));
        assert!(!cell.unwrap().contains("const&"), "{cell:?}");
    }
}

#[test]
fn a_profile_without_waits_says_so() {
    let Some(document) = open(&page(&Profile::default())) else {
        return;
    };
    assert!(document.contains("No thread waited for a lock."));
    assert!(document.contains("Nothing to show."));
}
