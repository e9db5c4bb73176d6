//! `overlock-lab bench grid`, and its short form, which is `overlock-lab bench`.

use std::env;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use overlock_bench::error::Error;
use overlock_bench::grid::plan::{self, Plan};
use overlock_bench::grid::report::text::{Layout, render};
use overlock_bench::grid::report::{Report, Settings, markdown, svg};
use overlock_bench::grid::run::{End, run as measured};
use overlock_bench::grid::shape::{SHAPES, Shape, find};
use overlock_bench::grid::{self, Choice};
use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine;
use overlock_bench::registry::Family;
use overlock_bench::world::native::{CHECKED, Native};
use overlock_report::json;

use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::load::check_threads;
use crate::measure::progress::Progress;
use crate::number::{ANY, seconds, whole};
use crate::terminal::{print_beside, width};

/// How long the short form takes, with room below the 90 seconds that it promises.
const SHORT_BUDGET: Duration = Duration::from_secs(80);
/// Cells that are named among the worst.
const WORST: [usize; 2] = [8, 20];

/// The options.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The shapes, by name; `bench grid --list` shows which there are [default: all, or those of
    /// the short form]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    shapes: Vec<String>,

    /// Families of locks
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        value_parser = family(),
        default_value = "mutex,rwlock,condvar"
    )]
    families: Vec<Family>,

    /// Numbers of threads, for all shapes [default: those of each shape]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = whole::<usize>(1, ANY)
    )]
    threads: Vec<usize>,

    /// The locks; `bench --list` shows which there are. The ratios are those of our type
    /// (`overlock-mutex`, …), or else of the first of our locks here, against each of the others
    /// [default: ours and all that people use today; in the short form one of each kin]
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    locks: Vec<String>,

    /// Rounds for each lock in each cell [default: 5; in the short form 3]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 10_000))]
    rounds: Option<usize>,

    /// Rounds that time each wait, apart from the others
    #[arg(long, value_name = "N", value_parser = whole::<usize>(0, 10_000), default_value = "1")]
    latency_rounds: usize,

    /// Length of a round; with 16 threads it is doubled, from 64 on four times as long [default:
    /// 0.25; in the short form by --budget]
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "budget")]
    seconds: Option<Duration>,

    /// Length of the whole run, to which rounds are fitted [default: none; in the short form 80]
    #[arg(long, value_name = "S", value_parser = seconds)]
    budget: Option<Duration>,

    /// Seed of the random choices: which lock, how long a pause
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    seed: u64,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draw the heat maps
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the body of a page: the losing cells first
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Show a table of all locks for each cell
    #[arg(long)]
    details: bool,

    /// Print neither progress nor tables
    #[arg(long, short)]
    quiet: bool,
}

/// All of it, or the part that is worth 90 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Whole,
    Short,
}

/// The options, checked.
struct Request {
    plan: Plan,
    budget: Option<Duration>,
}

/// Measures, and reports.
pub fn run(args: &Args, form: Form) -> Result<(), Exit> {
    let request = request(args, form)?;
    let mut plan = request.plan;
    if let Some(budget) = request.budget {
        plan.fit(budget);
    }
    let files = Files::open([
        ("--json", &args.json),
        ("--svg", &args.svg),
        ("--markdown", &args.markdown),
    ])?;
    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let machine = Machine::probe();
    if !args.quiet {
        announce(&plan);
    }

    let world = Native::new(machine.allowed().to_vec(), interrupt, ending::stuck);
    let (check, end) = grid::check::loops(&world, &plan.places);
    ended(end)?;
    let progress = Progress::timed(plan.duration(), args.quiet);
    let outcome = measured(&world, &plan, machine.cpus, |done, place, entry| {
        let name = entry.origin.title(entry.name);
        let shape = place.shape;
        let what = format!(
            "{} {}, {} threads: {name}",
            shape.family.word(),
            shape.name,
            place.threads
        );
        progress.at_time(done, &what);
    });
    progress.finish();

    let empty = outcome.cells.is_empty();
    if !empty {
        let report = Report::new(machine, settings(&plan, form), check, &outcome, &world);
        if !args.quiet {
            show(&report, args, form, files.use_stdout())?;
        }
        files.write([
            &|out| json::write(out, &report),
            &|out| svg::write(out, &report),
            &|out| markdown::write(out, &report),
        ])?;
    }
    ended(outcome.end)?;
    if empty {
        // Nothing was measured: this machine allows none of the selected shapes.
        let why = outcome.skipped.first().map_or_else(
            || "no cell has a whole round".to_owned(),
            |(shape, why)| format!("{}: {why}", shape.name),
        );
        return Err(Exit::usage(why));
    }
    Ok(())
}

/// How the program ends after a run that ended so.
fn ended(end: End) -> Result<(), Exit> {
    match end {
        End::Complete => Ok(()),
        End::Interrupted => Err(Exit::Interrupted),
        End::Failed(failure) => Err(match failure.error {
            error @ Error::Spawn { .. } => Exit::usage(error.to_string()),
            error => Exit::Failed(format!(
                "{} in {} {} with {} threads {error}",
                failure.entry.name,
                failure.shape.family.word(),
                failure.shape.name,
                failure.threads
            )),
        }),
    }
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args, form: Form) -> Result<(), Exit> {
    request(args, form).map(drop)
}

fn request(args: &Args, form: Form) -> Result<Request, Exit> {
    let families = Family::ALL.into_iter();
    let families: Vec<Family> = families.filter(|one| args.families.contains(one)).collect();
    let locks = choice(&args.locks, &families, form)?;
    let mut threads = args.threads.clone();
    threads.sort_unstable();
    threads.dedup();
    let locks = |family| grid::contestants(family, &locks);
    let mut places = if args.shapes.is_empty() && form == Form::Short {
        let all = plan::short(&families, locks);
        if threads.is_empty() {
            all
        } else {
            let mut shapes: Vec<&'static Shape> = all.iter().map(|place| place.shape).collect();
            shapes.dedup_by_key(|shape| shape.name);
            plan::places(&shapes, &threads, locks)
        }
    } else if args.shapes.is_empty() {
        plan::places(&plan::all(&families), &threads, locks)
    } else {
        plan::places(&shapes(&args.shapes, &families)?, &threads, locks)
    };
    // A shape of a family in which there is nothing to compare with.
    places.retain(|place| place.locks.len() - usize::from(place.limit().is_some()) > 1);
    if places.is_empty() {
        return Err(Exit::usage(
            "--locks leaves fewer than two locks to compare in these shapes; bench micro measures a \
             single one",
        ));
    }
    check_threads(places.iter().map(|place| place.threads).max().unwrap_or(1))?;
    let short_budget = (form == Form::Short && args.seconds.is_none()).then_some(SHORT_BUDGET);
    Ok(Request {
        budget: args.budget.or(short_budget),
        plan: Plan {
            places,
            rounds: args.rounds.unwrap_or(match form {
                Form::Short => 3,
                Form::Whole => 5,
            }),
            latency_rounds: args.latency_rounds,
            round: args.seconds.unwrap_or(plan::ROUND),
            seed: args.seed,
            deadline: None,
        },
    })
}

fn family() -> impl TypedValueParser<Value = Family> {
    PossibleValuesParser::new(Family::ALL.map(Family::word)).try_map(|word| {
        let mut all = Family::ALL.into_iter();
        all.find(|family| family.word() == word).ok_or(word)
    })
}

fn choice(words: &[String], families: &[Family], form: Form) -> Result<Choice, Exit> {
    if words.is_empty() {
        return Ok(match form {
            Form::Whole => Choice::Usual,
            Form::Short => Choice::Short,
        });
    }
    let words: Vec<String> = words.iter().map(|word| word.trim().to_owned()).collect();
    grid::check_names(families, &words).map_err(|error| Exit::usage(error.to_string()))?;
    Ok(Choice::Named(words))
}

fn shapes(words: &[String], families: &[Family]) -> Result<Vec<&'static Shape>, Exit> {
    let known = |word: &String| {
        find(families, word.trim()).ok_or_else(|| {
            let of_them = SHAPES
                .iter()
                .filter(|shape| families.contains(&shape.family));
            let names: Vec<&str> = of_them.map(|shape| shape.name).collect();
            let names = names.join(", ");
            Exit::usage(format!("unknown shape '{word}'; the shapes are {names}"))
        })
    };
    let chosen: Vec<&'static Shape> = words.iter().map(known).collect::<Result<_, _>>()?;
    let is_chosen = |shape: &&Shape| chosen.iter().any(|one| std::ptr::eq(*one, *shape));
    Ok(SHAPES.iter().filter(is_chosen).collect())
}

/// Announces the plan, and how long it takes.
fn announce(plan: &Plan) {
    if CHECKED {
        crate::tell!(
            "overlock-lab: built with checks for misuse, which cost time; cargo build --release -p overlock-lab builds it without"
        );
    }
    let minutes = plan.duration().as_secs_f64() / 60.0;
    let time = if minutes < 2.0 {
        format!("{:.0} s", plan.duration().as_secs_f64())
    } else {
        format!("{minutes:.0} minutes")
    };
    crate::tell!(
        "overlock-lab: {} cells, about {time}; Ctrl-C ends it and reports what has been measured",
        plan.places.len()
    );
}

/// The rest comes from the run.
fn settings(plan: &Plan, form: Form) -> Settings {
    let words = env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    let command: Vec<String> = ["overlock-lab".to_owned()]
        .into_iter()
        .chain(words)
        .collect();
    Settings {
        form: match form {
            Form::Whole => "grid",
            Form::Short => "short",
        },
        command: command.join(" "),
        rounds: plan.rounds,
        latency_rounds: plan.latency_rounds,
        seconds: plan.round.as_secs_f64(),
        seed: plan.seed,
        clock: "",
        end: "",
        elapsed_s: 0.0,
    }
}

fn show(report: &Report, args: &Args, form: Form, stdout_is_taken: bool) -> Result<(), Exit> {
    let terminal = if stdout_is_taken {
        io::stderr().is_terminal()
    } else {
        io::stdout().is_terminal()
    };
    let whole = form == Form::Whole;
    let layout = Layout {
        width: width(),
        colours: terminal && colours_are_wanted(),
        worst: WORST[usize::from(whole)],
        all: whole,
        details: args.details,
    };
    let text = render(report, &layout);
    print_beside(stdout_is_taken, &text)
}

/// As <https://no-color.org> has it.
fn colours_are_wanted() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
