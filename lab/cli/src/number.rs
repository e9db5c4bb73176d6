//! Numbers in options. Parsed here and not by clap, so that each complaint is one line that names
//! what is valid.

use std::time::Duration;

use crate::exit::Exit;

/// A time in seconds. A millisecond is the least that means anything, a day the most that anybody
/// waits for.
pub fn seconds(option: &str, text: &str) -> Result<Duration, Exit> {
    number(option, text, 0.001, 86_400.0, "seconds").map(Duration::from_secs_f64)
}

/// A whole number; `usize::MAX` means that there is no upper limit.
pub fn whole(option: &str, text: &str, least: usize, most: usize) -> Result<usize, Exit> {
    match text.trim().parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => {
            let huge = |number: u128| number > most as u128;
            let range = match most {
                usize::MAX if !text.trim().parse().is_ok_and(huge) => {
                    format!("of at least {least}")
                }
                most => format!("from {least} to {most}"),
            };
            Err(Exit::usage(format!(
                "{option} {text}: must be a whole number {range}"
            )))
        }
    }
}

/// Any number.
pub fn number(option: &str, text: &str, least: f64, most: f64, unit: &str) -> Result<f64, Exit> {
    match text.trim().parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Exit::usage(format!(
            "{option} {text}: must be {unit}, a number from {least} to {most}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<impl std::fmt::Debug, Exit>) -> String {
        match result.unwrap_err() {
            Exit::Usage(message) => message,
            other => panic!("not bad use: {other:?}"),
        }
    }

    #[test]
    fn numbers_have_their_range() {
        assert_eq!(
            message(whole("--runs", "0", 1, 9)),
            "--runs 0: must be a whole number from 1 to 9"
        );
        assert_eq!(
            message(whole("--threads", "0", 1, usize::MAX)),
            "--threads 0: must be a whole number of at least 1"
        );
        assert_eq!(
            message(whole("--seed", "18446744073709551616", 0, usize::MAX)),
            "--seed 18446744073709551616: must be a whole number from 0 to 18446744073709551615"
        );
        for nonsense in ["-1", "NaN", "inf", "1e99", "ten", ""] {
            assert!(
                message(number("--cs", nonsense, 0.0, 1e9, "nanoseconds"))
                    .ends_with("from 0 to 1000000000")
            );
        }
    }
}
