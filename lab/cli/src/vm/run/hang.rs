//! The state of each vCPU in a guest that makes no progress.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use overlock_report::numbers::count;
use overlock_vm::image::Image;
use overlock_vm::monitor::Place;

use super::lines::{Hang, Phase};

/// A line for each vCPU, and one that says who holds the lock. Nothing without vCPUs.
///
/// The monitor knows the places of vCPUs. Elsewhere the guest has found them by interrupts.
pub fn describe(hangs: &[Hang], places: &[Place], image: &Path) -> String {
    let mut text = String::new();
    if hangs.is_empty() {
        return text;
    }
    let file = fs::read(image).unwrap_or_default();
    let image = Image::parse(&file).ok();
    for hang in hangs {
        let place = places.iter().find(|place| place.vcpu == hang.vcpu);
        let rip = place.map_or(hang.rip, |place| place.rip);
        let function = image.as_ref().and_then(|image| image.describe(rip));
        let _ = write!(text, "\n  vCPU {} {}", hang.vcpu, phase(hang.phase));
        if hang.halted_on != 0 {
            let _ = write!(text, ", halts on {:#x}", hang.halted_on);
        }
        let _ = write!(text, ", {} operations", count(hang.operations as f64));
        if rip != 0 {
            let _ = write!(text, ", at {rip:#x}");
        }
        if let Some(function) = function {
            let _ = write!(text, " in {function}");
        }
    }
    text + "\n  " + &holders(hangs)
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Outside => "is outside the lock",
        Phase::Waiting => "waits for the lock",
        Phase::Holding => "holds the lock",
    }
}

fn holders(hangs: &[Hang]) -> String {
    let holders = hangs.iter().filter(|hang| hang.phase == Phase::Holding);
    let holders: Vec<String> = holders.map(|hang| hang.vcpu.to_string()).collect();
    match &holders[..] {
        [] => "no vCPU holds the lock".to_owned(),
        [one] => format!("vCPU {one} holds the lock"),
        many => format!("vCPUs {} hold the lock", many.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hang(vcpu: usize, phase: Phase, rip: u64) -> Hang {
        Hang {
            hang: "mcs".to_owned(),
            vcpu,
            phase,
            operations: 7,
            rip,
            halted_on: 0x100,
        }
    }

    #[test]
    fn each_vcpu_has_a_line() {
        let hangs = [hang(1, Phase::Waiting, 0), hang(2, Phase::Holding, 0x20)];
        let places = [Place {
            vcpu: 1,
            rip: 0x10,
            function: None,
            halted: true,
        }];
        let text = describe(&hangs, &places, Path::new("/no/such/file"));
        assert_eq!(
            text,
            "\n  vCPU 1 waits for the lock, halts on 0x100, 7 operations, at 0x10\
             \n  vCPU 2 holds the lock, halts on 0x100, 7 operations, at 0x20\
             \n  vCPU 2 holds the lock"
        );
        let nobody = describe(&hangs[..1], &[], Path::new(""));
        assert!(nobody.ends_with("\n  no vCPU holds the lock"), "{nobody}");
        assert_eq!(describe(&[], &places, Path::new("")), "");
    }
}
