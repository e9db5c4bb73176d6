//! A wait as a marker.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, Profile,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle,
};

use crate::Parts;

pub struct WaitMarker {
    pub category: CategoryHandle,
    /// The lock.
    pub name: StringHandle,
    pub holder: StringHandle,
    pub held_at: StringHandle,
    /// In milliseconds.
    pub times: [f64; 7],
}

/// The parts in the order of the fields, in milliseconds.
pub fn times(parts: &Parts) -> [f64; 7] {
    parts.in_order().map(|ns| ns as f64 / 1e6)
}

const fn text(key: &'static str, label: &'static str) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField {
        key,
        label,
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }
}

const fn duration(key: &'static str, label: &'static str) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField {
        key,
        label,
        format: MarkerFieldFormat::Duration,
        flags: MarkerFieldFlags::empty(),
    }
}

/// Before the times.
const TEXTS: u32 = 2;

impl StaticSchemaMarker for WaitMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "LockWait";
    const DESCRIPTION: Option<&'static str> = Some("A wait for a lock.");
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART
        .union(MarkerLocations::MARKER_TABLE)
        .union(MarkerLocations::TIMELINE_OVERVIEW);
    const CHART_LABEL: Option<&'static str> = Some("held by {marker.data.held_at}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.name}, held by {marker.data.holder} in {marker.data.held_at}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        text("holder", "Holder"),
        text("held_at", "Held by"),
        duration("ran", "Holder ran"),
        duration("preempted", "Holder had no CPU"),
        duration("throttled", "Holder was throttled"),
        duration("blocked", "Holder was blocked"),
        duration("handover", "Handover"),
        duration("no_cpu", "Waiter had no CPU"),
        duration("unknown", "Unknown"),
    ];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        [self.holder, self.held_at][field as usize]
    }

    fn number_field_value(&self, field: u32) -> f64 {
        self.times[(field - TEXTS) as usize]
    }
}
