use super::*;

#[test]
fn worth_rises_quickly_and_falls_slowly() {
    let score = Score::new();
    assert!(score.promises(), "the first wait tries");
    score.learn(false);
    assert!((0..PROBE).all(|_| !score.promises()));
    assert!(score.promises(), "and then each so many");
    score.learn(true);
    assert!((0..100).all(|_| score.promises()));
    score.learn(false);
    assert!(score.promises());
    for _ in 0..10 {
        score.learn(true);
    }
    for _ in 0..Score::MOST - Score::ENOUGH {
        score.learn(false);
        assert!(score.promises());
    }
    score.learn(false);
    assert!(score.worth.load(Relaxed) < Score::ENOUGH);
}

#[test]
fn tries_in_vain_become_rare() {
    let score = Score::new();
    let waits = || (0..).take_while(|_| !score.promises()).count();
    let mut between = Vec::new();
    for _ in 0..8 {
        assert!(score.promises(), "a wait that may not spin uses up no try");
        score.learn(false);
        between.push(waits());
    }
    assert_eq!(between, [32, 64, 128, 256, 512, 1024, 1024, 1024]);
    score.learn(true);
    for _ in 0..Score::MOST / 2 {
        score.learn(false);
    }
    assert!(waits() < 1024, "one success, and all begins anew");
}

#[test]
fn an_object_has_one_spinner() {
    let score = Score::new();
    assert!(score.claim(100, 150));
    assert!(!score.claim(120, 170));
    assert!(score.claim(150, 200), "a claim ends by itself");
}

#[test]
fn a_budget_pays_for_a_share_of_the_time() {
    let mut budget = Budget::NEW.at(1);
    assert!(budget.pays(SAVINGS_NS));
    budget.spend(SAVINGS_NS);
    assert!(!budget.pays(1));
    let later = budget.at(1 + 1000 * VAIN_SHARE);
    assert!(later.pays(1000) && !later.pays(1001));
    assert!(
        !later.at(u64::MAX).pays(SAVINGS_NS + 1),
        "savings are bounded"
    );
}

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
    assert_ne!(mode(&u32::MAX.to_string()), OFF);
}
