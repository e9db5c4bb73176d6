use super::*;
use crate::reproduce::Verdict;
use crate::reproduce::label::{Count, Place, Scale, Unit};

static RATE: Unit = Unit {
    title: "beans a second",
    short: None,
    scale: Scale::Absolute,
};
static GAIN: Unit = Unit {
    title: "gain, percent",
    short: Some("percent"),
    scale: Scale::Gain,
};

fn at(number: usize) -> Place {
    Place::new(number, Count::Vcpus)
}

fn reproduction(verdict: Verdict) -> Reproduction {
    Reproduction {
        table: "beans",
        about: "how many beans there are",
        assumes: "",
        year: 2017,
        fitted: false,
        seed: 7,
        seeds: 1,
        length: 1.0,
        verdict,
    }
}

fn picture(all: &[Reproduction]) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, all).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The elements of that name, below the head, each as the figures of these attributes, where
/// `filter` is in its text.
fn elements<const N: usize>(
    picture: &str,
    name: &str,
    filter: &str,
    attributes: [&str; N],
) -> Vec<[f64; N]> {
    let elements = picture
        .split('<')
        .filter(|element| element.starts_with(&format!("{name} ")) && element.contains(filter));
    let figures = elements.map(|element| {
        attributes.map(|attribute| {
            let (_, rest) = element.split_once(&format!(" {attribute}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        })
    });
    let below = |figures: &[f64; N]| figures[1] > f64::from(HEAD);
    figures.filter(below).collect()
}

const BAND: &str = r#"opacity="0.25""#;
const RING: &str = r#"r="9""#;

/// Left, top, width and height.
fn bands(picture: &str) -> Vec<[f64; 4]> {
    elements(picture, "rect", BAND, ["x", "y", "width", "height"])
}

fn circles(picture: &str, filter: &str) -> Vec<[f64; 2]> {
    elements(picture, "circle", filter, ["cx", "cy"])
}

/// Figures of all kinds, those that are outside named so.
fn mixed() -> Verdict {
    let mut verdict = Verdict::default();
    for (vcpus, measured, published) in [(2, 120.0, 100.0), (4, 70.0, 100.0), (8, 200.0, 100.0)] {
        verdict.within(at(vcpus), RATE.of("share"), measured, published, 0.25);
        verdict.near(at(vcpus), GAIN.of("gain"), -measured, -90.0, 35.0);
        let far = measured * 1000.0 * vcpus as f64;
        verdict.within(
            at(vcpus).on("abacus"),
            RATE.of("far"),
            far,
            published * 8.0,
            0.3,
        );
    }
    verdict
}

/// The picture agrees with the verdict: a figure is in its band if it has no ring, and outside if
/// it has.
#[test]
fn figures_are_in_their_bands_or_marked() {
    let verdict = mixed();
    let lines = verdict.lines.clone();
    let picture = picture(&[reproduction(verdict)]);
    let count = |reached| lines.iter().filter(|line| line.reached == reached).count();
    let (bands, rings) = (bands(&picture), circles(&picture, RING));
    assert_eq!(bands.len(), lines.len());
    assert_eq!(rings.len(), count(false));
    let dots = circles(&picture, r#"r="5""#);
    for [left, top, width, height] in bands {
        let row = |y: f64| ((y - f64::from(HEAD + TITLE)) / f64::from(ROW)).floor();
        let mine = |[x, y]: &&[f64; 2]| (left..=left + width).contains(x) && row(*y) == row(top);
        let [x, y] = dots.iter().find(mine).expect("a band has a figure");
        let inside = (top..=top + height).contains(y);
        assert_eq!(inside, !rings.contains(&[*x, *y]), "at {x}, {y}");
    }
}

#[test]
fn more_is_higher_and_stands_further_to_the_right() {
    let mut verdict = Verdict::default();
    for vcpus in [2, 4, 8] {
        verdict.within(at(vcpus), RATE.of("beans"), vcpus as f64, 1.0, 10.0);
    }
    let dots = circles(&picture(&[reproduction(verdict)]), r#"r="5""#);
    assert!(
        dots.is_sorted_by(|[x, y], [next, above]| x < next && y > above),
        "{dots:?}"
    );
}

#[test]
fn axes_have_titles_with_units() {
    let picture = picture(&[reproduction(mixed())]);
    for part in [
        "beans a second\n",
        "beans a second (log scale)\n",
        "gain, percent\n",
        "vCPUs\n",
        "abacus\n",
        "beans\n",
        "how many beans there are\n",
        "3 of 9 figures within their bounds; not looked at",
        "seed 7\n",
    ] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
}

/// On white, whatever the page is.
#[test]
fn tables_stand_below_each_other() {
    let height = |picture: &str| -> i32 {
        let start = r#"<rect x="0" y="0" width="1100" height=""#;
        let (_, rest) = picture.split_once(start).unwrap();
        let (height, rest) = rest.split_once('"').unwrap();
        assert!(
            rest.starts_with(r##" opacity="1" fill="#FFFFFF" stroke="none"/>"##),
            "{rest}"
        );
        height.parse().unwrap()
    };
    let one = picture(&[reproduction(mixed())]);
    let two = picture(&[reproduction(mixed()), reproduction(mixed())]);
    assert_eq!(height(&two) - HEAD, 2 * (height(&one) - HEAD));
    let (first, both) = (bands(&one), bands(&two));
    let below = f64::from(height(&one) - HEAD);
    let second = first
        .iter()
        .map(|[x, y, width, height]| [*x, y + below, *width, *height]);
    assert_eq!(
        both,
        first.iter().copied().chain(second).collect::<Vec<_>>()
    );
}

/// A simulation that is too short has no ratio.
#[test]
fn figures_that_are_none_are_left_out() {
    let mut verdict = Verdict::default();
    verdict.within(at(2), RATE.of("none"), f64::NAN, 1.0, 0.25);
    verdict.within(at(4), RATE.of("none"), f64::INFINITY, 1.0, 0.25);
    verdict.within(at(8), RATE.of("none"), 0.0, 1.0, 0.25);
    let picture = picture(&[reproduction(verdict), reproduction(Verdict::default())]);
    assert!(
        !picture.contains("NaN") && !picture.contains("inf"),
        "{picture}"
    );
    assert_eq!(bands(&picture).len(), 3);
    assert_eq!(circles(&picture, RING).len(), 1);
}
