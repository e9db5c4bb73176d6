//! Parsers of files and words: they never panic, whatever the input, and read back what was
//! written.

use std::path::Path;

use overlock_bench::cgroup::{Version, limit, limit_of_max, locate};
use overlock_bench::machine::{count_list, field, memory_of};
use overlock_bench::registry::{Family, select};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select as one_of;

/// Text with a good share of the words of the parsers.
fn text(words: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => one_of(words).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|number| number.to_string()),
        1 => any::<char>().prop_map(String::from),
    ];
    vec(word, 0..most).prop_map(|words| words.concat())
}

const CGROUP: &[&str] = &[
    "0", "1", "12", ":", "::", "cpu", "cpuacct", ",", "pids", "/", "/..", "/a", "/box", "\n", "",
];

const MOUNTS: &[&str] = &[
    " ",
    "\n",
    " - ",
    "cgroup",
    "cgroup2",
    "cpu",
    "pids",
    "rw",
    ",",
    "/",
    "/box",
    "/sys/fs/cgroup",
    "25",
    "0:22",
    "shared:4",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-",
    "-1",
    ",",
    " ",
    "\n",
    "max",
    "3-1",
    "0-7",
    "1e9",
    "inf",
    "18446744073709551615",
];

const FIELDS: &[&str] = &[
    "MemTotal",
    ":",
    "\t",
    " ",
    "\n",
    "kB",
    "1024",
    "model name",
    "flags",
    "hypervisor",
    "-",
];

/// An end of a range.
fn end() -> impl Strategy<Value = usize> {
    prop_oneof![0..100_usize, Just(usize::MAX), any::<usize>()]
}

fn family() -> impl Strategy<Value = Family> {
    one_of(&Family::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_surprises_the_search_for_a_cgroup(cgroups in text(CGROUP, 24), mounts in text(MOUNTS, 24)) {
        for controller in ["cpu", "pids"] {
            if let Some(place) = locate(controller, &cgroups, &mounts) {
                prop_assert!(place.dir.starts_with(&place.mount), "{place:?}");
            }
        }
    }

    #[test]
    fn a_cgroup_is_found_where_the_system_says(
        path in "(/[a-z]{1,5}){1,4}",
        mount in "/nowhere(/[a-z]{1,5}){0,2}",
        controller in "[a-z]{1,8}",
        others in vec("[a-z]{9}", 0..3),
    ) {
        let all = [others.as_slice(), std::slice::from_ref(&controller)].concat().join(",");
        let cgroups = format!("3:{all}:{path}\n0::/elsewhere\n");
        let mounts = format!("30 25 0:26 / {mount} rw,nosuid - cgroup cgroup rw,{all}\n");
        let place = locate(&controller, &cgroups, &mounts).unwrap();
        prop_assert_eq!(place.version, Version::V1);
        // The mount stands in for a directory that does not exist.
        prop_assert_eq!(place.dir.as_path(), Path::new(&mount));
        prop_assert_eq!(place.mount, Path::new(&mount));

        let cgroups = format!("0::{path}\n");
        let mounts = format!("30 25 0:26 {path} {mount} rw shared:4 - cgroup2 cgroup2 rw\n");
        let place = locate(&controller, &cgroups, &mounts).unwrap();
        prop_assert_eq!(place.version, Version::V2);
        prop_assert_eq!(place.mount, Path::new(&mount));
    }

    #[test]
    fn limits_are_positive_or_none(quota in text(NUMBERS, 4), period in text(NUMBERS, 4)) {
        for limit in [limit(&quota, &period), limit_of_max(&quota)].into_iter().flatten() {
            prop_assert!(limit.is_finite() && limit > 0.0, "{limit}");
        }
    }

    #[test]
    fn limits_are_read_back(quota in 1..1_u64 << 40, period in 1..1_u64 << 40) {
        let share = quota as f64 / period as f64;
        prop_assert_eq!(limit(&format!("{quota}\n"), &format!("{period}\n")), Some(share));
        prop_assert_eq!(limit_of_max(&format!("{quota} {period}\n")), Some(share));
        prop_assert_eq!(limit("-1", &period.to_string()), None);
        prop_assert_eq!(limit_of_max(&format!("max {period}\n")), None);
    }

    #[test]
    fn no_list_of_cpus_surprises(list in text(NUMBERS, 4)) {
        let _ = count_list(&list);
    }

    /// Those of more numbers than there are, too.
    #[test]
    fn lists_of_cpus_are_counted(ranges in vec((end(), end()), 1..5)) {
        let list: Vec<String> = ranges
            .iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect();
        let count = ranges.iter().try_fold(0_u128, |count, &(first, last)| {
            Some(count + (last.checked_sub(first)? as u128 + 1))
        });
        let count = count.and_then(|count| usize::try_from(count).ok());
        prop_assert_eq!(count_list(&format!("{}\n", list.join(","))), count);
    }

    #[test]
    fn no_file_of_fields_surprises(file in text(FIELDS, 12)) {
        let _ = (field(&file, "flags"), memory_of(&file));
    }

    #[test]
    fn fields_are_read_back(
        key in "[a-z]{1,8}( [a-z]{1,8})?",
        value in "[!-~]([ -~]{0,20}[!-~])?",
        kilobytes in 0..1_u64 << 50,
    ) {
        let file = format!("other\t: x\n{key}\t: {value}\n\nMemTotal:   {kilobytes} kB\n");
        prop_assume!(key != "other");
        prop_assert_eq!(field(&file, &key), Some(value.as_str()));
        prop_assert_eq!(memory_of(&file), Some(kilobytes * 1024));
    }

    #[test]
    fn no_word_surprises_the_choice_of_locks(family in family(), words in vec(any::<String>(), 1..4)) {
        match select(family, words.iter().map(String::as_str)) {
            Ok(chosen) => prop_assert!(!chosen.is_empty()),
            Err(error) => prop_assert!(error.to_string().contains("; the locks are all, ours")),
        }
    }

    /// Each once, in the order of the list, and by any of its names.
    #[test]
    fn locks_are_chosen_by_name(
        family in family(),
        indices in vec(any::<prop::sample::Index>(), 1..8),
        dashes in any::<bool>(),
    ) {
        let locks = family.locks();
        let indices: Vec<usize> = indices.iter().map(|index| index.index(locks.len())).collect();
        let words: Vec<String> = indices
            .iter()
            .map(|&index| {
                let entry = &locks[index];
                let name = entry.aliases.first().unwrap_or(&entry.name);
                if dashes { name.replace('_', "-") } else { name.to_string() }
            })
            .collect();
        let chosen = select(family, words.iter().map(String::as_str)).unwrap();
        let chosen: Vec<&str> = chosen.iter().map(|entry| entry.name).collect();
        let expected: Vec<&str> = locks
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| indices.contains(&index).then_some(entry.name))
            .collect();
        prop_assert_eq!(chosen, expected);
    }
}
