//! Draws the pictures of recorded tables again: results/real.svg, peers.svg and mutants.svg.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use overlock_report::picture::{
    Axis, BLACK, COLOURS, Canvas, Chart, Color, RGBColor, pen, picture,
};

const WIDTH: i32 = 1000;
/// The names of the rows.
const LEFT: i32 = 270;
const RIGHT: i32 = 40;
/// The title, and the meaning of the colours.
const HEAD: i32 = 100;
/// The labels and the title of the axis below.
const FOOT: i32 = 66;

fn main() -> io::Result<()> {
    let real = Ratios {
        title: "Real programs: the rate with the drop-in, over the rate without it",
        axis: "ratio of the rates: the median of three rounds, the least and the most",
        levels: &[0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5],
        series: &[
            "2 threads",
            "8 threads",
            "32 threads",
            "8 threads, 1.5 CPUs",
        ],
        rows: programs(&read("results/real.md")?),
    };
    draw("real", real.rows.len(), 34, |chart| real.draw(chart))?;
    let peers = Ratios {
        title: "Models of peers: the model's throughput, over its original's, on two CPUs",
        axis: "ratio of the throughputs: the median of 31 rounds, and the quartiles",
        levels: &[0.6, 0.8, 1.0, 1.2, 1.6],
        series: &["0/0", "65/330", "1000/5000 ns in the section and outside"],
        rows: models(&read("results/peers.md")?),
    };
    draw("peers", peers.rows.len(), 30, |chart| peers.draw(chart))?;
    let locks = locks(&read("results/mutants.md")?);
    draw("mutants", locks.len(), 22, |scene| mutants(scene, &locks))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> io::Result<String> {
    fs::read_to_string(root().join(page))
}

/// A canvas with room for so many rows, which are so high.
struct Scene<'a, 'b> {
    canvas: &'a Canvas<'b>,
    rows: i32,
    height: i32,
}

fn draw(
    name: &str,
    rows: usize,
    height: i32,
    scene: impl FnOnce(&Scene<'_, '_>),
) -> io::Result<()> {
    let out = File::create(root().join(format!("results/{name}.svg")))?;
    let rows = i32::try_from(rows).expect("a page has few rows");
    picture(out, (WIDTH, HEAD + rows * height + FOOT), |canvas| {
        scene(&Scene {
            canvas,
            rows,
            height,
        });
    })
}

impl Scene<'_, '_> {
    /// The title, the colours with their meanings, and the chart, whose first row is the uppermost.
    fn chart<'n>(
        &self,
        title: &str,
        meanings: &[&str],
        x: (Axis, &str),
        names: impl DoubleEndedIterator<Item = &'n String>,
    ) -> Chart {
        self.canvas.text((24, 16), pen(20), title);
        let mut left = 24;
        for (meaning, colour) in meanings.iter().zip(COLOURS) {
            let corners = [(left, 58), (left + 14, 72)];
            self.canvas.rectangle(corners, colour);
            self.canvas.text((left + 22, 57), pen(14), *meaning);
            left += 50 + 8 * i32::try_from(meaning.len()).expect("a few words");
        }
        let chart = Chart {
            corner: (LEFT, HEAD),
            size: (WIDTH - LEFT - RIGHT, self.rows * self.height),
            x: x.0,
            y: Axis::places(names.rev().cloned(), 0.5),
        };
        chart.draw(self.canvas, 13);
        chart.titles(self.canvas, x.1, "");
        chart
    }

    /// The middle of a row on the vertical axis.
    fn row(&self, number: usize) -> f64 {
        f64::from(self.rows - 1) - number as f64
    }
}

/// Ratios with ranges: a row of points for each name.
struct Ratios {
    title: &'static str,
    axis: &'static str,
    levels: &'static [f64],
    series: &'static [&'static str],
    rows: Vec<(String, Vec<Ratio>)>,
}

/// The median, and the ends of a range.
struct Ratio {
    median: f64,
    range: [f64; 2],
}

impl Ratios {
    fn draw(&self, scene: &Scene<'_, '_>) {
        let names = self.rows.iter().map(|(name, _)| name);
        let axis = (Axis::levels(self.levels), self.axis);
        let chart = scene.chart(self.title, self.series, axis, names);
        let bottom = f64::from(scene.rows) - 0.5;
        let level = [chart.at(1.0, -0.5), chart.at(1.0, bottom)];
        scene.canvas.path(level, BLACK.mix(0.6));
        let (first, last) = (self.levels[0], self.levels[self.levels.len() - 1]);
        let step = 0.76 / self.series.len() as f64;
        for (number, (_, ratios)) in self.rows.iter().enumerate() {
            let below = scene.row(number) - 0.5;
            let rule = [chart.at(first, below), chart.at(last, below)];
            scene.canvas.path(rule, BLACK.mix(0.12));
            for ((place, ratio), colour) in ratios.iter().enumerate().zip(COLOURS) {
                let above = (self.series.len() - 1) as f64 / 2.0 - place as f64;
                let y = scene.row(number) + above * step;
                let ends = ratio.range.map(|end| chart.at(end, y));
                scene.canvas.path(ends, colour.mix(0.55).stroke_width(2));
                scene
                    .canvas
                    .circle(chart.at(ratio.median, y), 4, colour.filled());
            }
        }
    }
}

/// The cells of the rows of a table.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_matches('|');
    inner.split('|').map(str::trim).collect()
}

/// `1.19 (1.08 to 1.38)`
fn ratio(cell: &str) -> Option<Ratio> {
    let (median, range) = cell.strip_suffix(')')?.split_once(" (")?;
    let (least, most) = range.split_once(" to ")?;
    Some(Ratio {
        median: median.parse().ok()?,
        range: [least.parse().ok()?, most.parse().ok()?],
    })
}

/// The rates of the page of programs: its tables of work for a second of CPU time are left out.
fn programs(page: &str) -> Vec<(String, Vec<Ratio>)> {
    let mut programs: Vec<(String, Vec<Ratio>)> = Vec::new();
    let mut of_rates = false;
    for line in page.lines() {
        if !line.starts_with('|') && !line.is_empty() {
            of_rates = line.to_lowercase().contains("ratio of the rates");
            continue;
        }
        let row = cells(line);
        let ratios: Vec<Ratio> = row.iter().filter_map(|cell| ratio(cell)).collect();
        if !of_rates || ratios.is_empty() {
            continue;
        }
        match programs.iter_mut().find(|(name, _)| name == row[0]) {
            Some((_, all)) => all.extend(ratios),
            None => programs.push((row[0].to_owned(), ratios)),
        }
    }
    let gain = |ratios: &[Ratio]| ratios.iter().map(|ratio| ratio.median.ln()).sum::<f64>();
    programs.sort_by(|(_, one), (_, other)| gain(other).total_cmp(&gain(one)));
    programs
}

/// The models beside their originals.
fn models(page: &str) -> Vec<(String, Vec<Ratio>)> {
    let rows = page.lines().filter(|line| line.starts_with('|')).map(cells);
    let rows = rows.map(|row| {
        let ratios: Vec<Ratio> = row.iter().filter_map(|cell| ratio(cell)).collect();
        let name = row[0].trim_matches('`');
        (format!("{name}, {} threads", row[1]), ratios)
    });
    rows.filter(|(_, ratios)| ratios.len() == 3).collect()
}

/// The check that noticed a mutant.
const CHECKS: [&str; 3] = [
    "the explorer: a failed check",
    "the explorer: a hang",
    "a unit test",
];

/// For each lock how many of its mutants each check noticed, the most mutants first.
fn locks(page: &str) -> Vec<(String, [usize; 3])> {
    let mut locks: Vec<(String, [usize; 3])> = Vec::new();
    for row in page.lines().map(cells) {
        let [lock, _, _, caught] = row[..] else {
            continue;
        };
        let check = match caught {
            "caught by" | "---" => continue,
            caught if caught.ends_with("a check failed") => 0,
            caught if caught.contains(": ") => 1,
            _ => 2,
        };
        let index = locks.iter().position(|(name, _)| name == lock);
        let index = index.unwrap_or_else(|| {
            locks.push((lock.to_owned(), [0; 3]));
            locks.len() - 1
        });
        locks[index].1[check] += 1;
    }
    locks.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<usize>()));
    locks
}

fn mutants(scene: &Scene<'_, '_>, locks: &[(String, [usize; 3])]) {
    let total = |counts: &[usize; 3]| counts.iter().sum::<usize>() as f64;
    let all: f64 = locks.iter().map(|(_, counts)| total(counts)).sum();
    let title = format!("{all} broken lines, and the check that noticed each: none survives");
    let most = locks.iter().map(|(_, counts)| total(counts));
    let axis = (Axis::up_to(most.fold(0.0, f64::max)), "broken lines");
    let names = locks.iter().map(|(name, _)| name);
    let chart = scene.chart(&title, &CHECKS, axis, names);
    for (number, (_, counts)) in locks.iter().enumerate() {
        let mut from = 0.0;
        for (&count, colour) in counts.iter().zip(COLOURS) {
            let to = from + count as f64;
            bar(scene, &chart, [from, to], scene.row(number), colour);
            from = to;
        }
    }
}

fn bar(scene: &Scene<'_, '_>, chart: &Chart, [from, to]: [f64; 2], row: f64, colour: RGBColor) {
    let corners = [chart.at(from, row + 0.36), chart.at(to, row - 0.36)];
    scene.canvas.rectangle(corners, colour);
}
