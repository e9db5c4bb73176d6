use super::*;

#[test]
fn a_spin_ends_when_the_word_changes_or_its_time_is_over() {
    let word = AtomicU32::new(7);
    assert_eq!(
        until_changed(&word, 6, ticks() + 1_000_000_000),
        Spun::Ready
    );
    let start = ticks();
    assert_ne!(until_changed(&word, 7, start + 20_000), Spun::Ready);
}

#[test]
fn the_variable_sets_the_longest_spin() {
    let known = [
        ("auto", AUTO),
        ("off", OFF),
        ("0", OFF),
        ("20", 20),
        ("2 s", AUTO),
    ];
    for (value, expected) in known {
        assert_eq!(mode(value), expected, "{value}");
    }
    assert!(mode(&u32::MAX.to_string()) < UNKNOWN);
}
