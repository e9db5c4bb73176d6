# stress-ng's stressors of pthread's objects, with its own checks.

for name in mutex sem pthread; do
    program "stress-ng-$name" stress-ng stress-ng
done

stress_ng() { # stressor options...
    locked stress-ng --temp-path "$WORK" --verify --metrics-brief --timeout "$SECONDS_EACH" --yaml "$WORK/yaml" "--$1" 1 "${@:2}"
    rate "$(sed -n 's/.*bogo-ops-per-second-real-time: *//p' "$WORK/yaml" | head -n 1)" operations/s
}

measure_stress_ng_mutex() {
    stress_ng mutex --mutex-procs "$THREADS"
}

measure_stress_ng_sem() {
    stress_ng sem --sem-procs "$THREADS"
}

measure_stress_ng_pthread() {
    stress_ng pthread --pthread-max "$THREADS"
}
