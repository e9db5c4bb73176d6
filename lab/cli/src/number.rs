//! Value parsers for the numbers of options: a complaint names what is valid.

use std::num::IntErrorKind;
use std::time::Duration;

use overlock_sim::Time;

/// The most threads, vCPUs or seeds where nothing limits them.
pub const ANY: u64 = u64::MAX;

/// A whole number; [`ANY`] means that there is no upper limit.
pub fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let read = text.trim().parse::<u64>();
        let number = read.as_ref().ok().copied();
        let number = number.filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let huge = read.is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow);
                match most {
                    ANY if !huge => format!("must be a whole number of at least {least}"),
                    most => format!("must be a whole number from {least} to {most}"),
                }
            })
    }
}

/// Any number, of this unit.
pub fn number(
    least: f64,
    most: f64,
    unit: &str,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + use<> {
    let complaint = format!("must be {unit}, a number from {least} to {most}");
    move |text| {
        let number = text.trim().parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| complaint.clone())
    }
}

/// A time in seconds. A millisecond is the least that means anything, a day the most that anybody
/// waits for.
pub fn seconds(text: &str) -> Result<Duration, String> {
    number(0.001, 86_400.0, "seconds")(text).map(Duration::from_secs_f64)
}

/// The same, or 0.
pub fn seconds_or_none(text: &str) -> Result<Duration, String> {
    match text.trim() {
        "0" => Ok(Duration::ZERO),
        text => seconds(text),
    }
}

/// The length of a simulation.
pub fn simulated_seconds(text: &str) -> Result<Duration, String> {
    simulated(Duration::from_micros(1), text)
}

/// A warm-up in simulated time.
pub fn warm_up(text: &str) -> Result<Duration, String> {
    simulated(Duration::ZERO, text)
}

/// At most an hour of simulated time; a number without a unit is seconds.
fn simulated(least: Duration, text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<f64>();
    let time = match seconds {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => text.trim().parse::<Time>().ok().map(Time::duration),
    };
    let time = time.filter(|time| (least..=Duration::from_secs(3600)).contains(time));
    time.ok_or_else(|| {
        let least = least.as_micros();
        format!(
            "must be a simulated time from {least} us to 3600 s, such as 20ms; a bare number is \
             seconds"
        )
    })
}

/// A time in milliseconds, up to a day.
pub fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = number(0.0, 86_400_000.0, "milliseconds")(text);
    number.map(|number| Duration::from_secs_f64(number / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_the_range() {
        let complaint = |least, most, text: &str| whole::<u64>(least, most)(text).unwrap_err();
        assert_eq!(complaint(1, 9, "0"), "must be a whole number from 1 to 9");
        assert_eq!(
            complaint(1, ANY, "0"),
            "must be a whole number of at least 1"
        );
        assert_eq!(
            complaint(0, ANY, "18446744073709551616"),
            "must be a whole number from 0 to 18446744073709551615"
        );
        for nonsense in ["-1", "NaN", "inf", "1e99", "ten", ""] {
            let complaint = number(0.0, 1e9, "nanoseconds")(nonsense).unwrap_err();
            assert!(complaint.ends_with("from 0 to 1000000000"), "{complaint}");
        }
    }
}
