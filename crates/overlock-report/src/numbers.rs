//! Numbers as people read them.

/// A whole number in groups of three digits.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Operations a second, in millions.
pub fn rate(ops_per_sec: f64) -> String {
    significant(ops_per_sec / 1e6)
}

/// About three significant digits.
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        x if x >= 0.01 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

/// A ratio.
pub fn factor(value: f64) -> String {
    format!("{value:.2}")
}

/// Seconds, to the millisecond.
pub fn seconds(value: f64) -> String {
    format!("{value:.3} s")
}

/// Two decimals at most.
pub fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Nanoseconds in the unit that suits them.
pub fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let decimals = usize::from(value < 10.0 && unit != "ns");
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(999.0), "999");
        assert_eq!(count(881_063.4), "881,063");
        assert_eq!(count(1_257_109.0), "1,257,109");
    }

    #[test]
    fn times_have_their_unit() {
        assert_eq!(time(18.4), "18 ns");
        assert_eq!(time(1_500.0), "1.5 us");
        assert_eq!(time(74_000.0), "74 us");
        assert_eq!(time(17_400_000.0), "17 ms");
        assert_eq!(time(1.2e9), "1.2 s");
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(significant(123.4), "123");
        assert_eq!(significant(12.34), "12.3");
        assert_eq!(significant(1.234), "1.23");
        assert_eq!(significant(0.0301), "0.030");
        assert_eq!(significant(0.0), "0");
    }

    #[test]
    fn overcommit_is_short() {
        assert_eq!(trimmed(16.0), "16");
        assert_eq!(trimmed(1.5), "1.5");
        assert_eq!(trimmed(2.0 / 3.0), "0.67");
    }
}
