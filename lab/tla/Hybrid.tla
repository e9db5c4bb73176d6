-------------------------------- MODULE Hybrid --------------------------------
(***************************************************************************)
(* The paravirtual queued locks: crates/overlock-family/src/spin/pv.rs, with *)
(* the newcomers of hybrid.rs or of pv_queued.rs. Steps are named after    *)
(* the functions of pv.rs, invariants as on its page.                      *)
(*                                                                         *)
(* One lock, one node a thread. A spin ends with what it waits for, or     *)
(* after a look in vain. README.md says what else is left out, and why.    *)
(***************************************************************************)
EXTENDS FiniteSets, Naturals, TLC

CONSTANTS
    Threads,     \* each with a node of the same name
    Nobody,
    Me,          \* the thread whose progress is checked; all are alike
    Steal,       \* a newcomer: "once" (pv_queued), "limited" (hybrid_short), "forever" (hybrid)
    EnterAgain,  \* Form::ENTER_AGAIN
    Broken       \* "nothing", or what is wrong

ASSUME Steal \in {"once", "limited", "forever"} /\ EnterAgain \in BOOLEAN /\ Me \in Threads

(* --algorithm hybrid
variables
    \* The word. Locked is slow while it is held and the head of the queue sleeps.
    tail = Nobody, pending = FALSE, locked = "free",
    \* The nodes that the lock hash has under this lock.
    hash = {},
    \* Node::next and Node::state; reset when a claim ends, since nobody looks at them then (I5).
    next = [t \in Threads |-> Nobody],
    state = [t \in Threads |-> "running"],
    \* Node::kicks is not what its waiter has read.
    kicked = [t \in Threads |-> FALSE],
    \* Thieves that have passed the head since it set pending; for I3.
    passed = 0;

define
    IsFree == ~pending /\ locked = "free"
    IsQueuedMode == pending \/ tail = Nobody
    IsHead(t) == state[t] \in {"head", "hashed"}
    \* Has read its kicks, and will compare them in its halt, or does so asleep.
    Watches(t) == pc[t] \in {"wait_exchange", "wait_halt", "wait_asleep",
                             "head_look", "head_insert", "head_swap", "head_halt", "head_asleep"}
    Asleep(t) == pc[t] \in {"wait_asleep", "head_asleep"}
end define;

macro end_claim() begin
    next[self] := Nobody;
    state[self] := "running";
end macro;

fair process thread \in Threads
variables
    before = Nobody,       \* in the queue: who stands before us
    entered = FALSE,       \* at its head: we have an entry in the hash, or had one
    queued_mode = FALSE,   \* a thief: what its look said
    head = Nobody;         \* an unlocker: who is to be kicked
begin
\* Nothing makes a thread want the lock.
lock:-
    if IsFree /\ tail = Nobody then
        locked := "held";
        goto unlock;
    end if;

steal_look:
    either
        await IsFree \/ (Broken = "thief_ignores_pending" /\ locked = "free");
        queued_mode := IsQueuedMode;
    or
        await ~IsFree /\ (IsQueuedMode \/ Steal # "forever");
        goto join;
    end either;

steal_take:
    if locked = "free" then
        locked := "held";
        passed := IF pending THEN passed + 1 ELSE 0;
        queued_mode := FALSE;
        goto unlock;
    elsif queued_mode \/ Steal = "once" then
        queued_mode := FALSE;
    else
        either
            goto steal_look;
        or
            await Steal = "limited";
        end either;
    end if;

join:
    before := tail;
    tail := self;
    if before = Nobody then
        goto head_pending;
    end if;

link:
    next[before] := self;
    before := Nobody;

wait_spin:
    if IsHead(self) then
        entered := state[self] = "hashed";
        goto head_pending;
    end if;

wait_kicks:
    kicked[self] := FALSE;

wait_exchange:
    if IsHead(self) then
        entered := state[self] = "hashed";
        goto head_pending;
    else
        state[self] := "halted";
    end if;

wait_halt:
    if Broken = "kicks_read_late" then
        kicked[self] := FALSE;
    elsif kicked[self] then
        goto wait_awake;
    end if;

wait_asleep:
    await kicked[self];

wait_awake:
    kicked[self] := FALSE;
    if IsHead(self) then
        entered := state[self] = "hashed";
    else
        state[self] := "running";
        goto wait_spin;
    end if;

head_pending:
    state[self] := "head";
    pending := TRUE;
    passed := 0;

head_spin:
    if locked = "free" then
        if Broken = "head_stores" then
            goto broken_store;
        else
            pending := FALSE;
            locked := "held";
            goto alone;
        end if;
    end if;

head_kicks:
    pending := Broken = "pending_stays";
    kicked[self] := FALSE;

head_look:
    if locked = "slow" then
        goto head_halt;
    elsif entered /\ ~EnterAgain then
        goto head_pending;
    elsif Broken = "entered_after_slow" then
        goto broken_slow;
    end if;

head_insert:
    hash := hash \union {self};
    entered := TRUE;

head_swap:
    if locked = "free" /\ Broken # "swap_result_ignored" then
        locked := "slow";
        goto head_won;
    else
        locked := "slow";
    end if;

head_halt:
    state[self] := "hashed";
    if Broken = "kicks_read_late" then
        kicked[self] := FALSE;
    elsif kicked[self] then
        goto head_pending;
    end if;

head_asleep:
    await kicked[self];
    goto head_pending;

\* The head has made it slow, and nobody held it.
head_won:
    locked := "held";
    hash := IF Broken = "entry_stays" THEN hash ELSE hash \ {self};

alone:
    entered := FALSE;
    kicked[self] := FALSE;
    if tail = self /\ ~pending /\ locked = "held" then
        tail := Nobody;
        end_claim();
        goto unlock;
    elsif Broken = "link_not_awaited" /\ next[self] = Nobody then
        end_claim();
        goto unlock;
    end if;

hand_over:
    await next[self] # Nobody;
    if state[next[self]] = "running" \/ Broken = "halted_ignored" then
        state[next[self]] := "head" || state[self] := "running";
        next[self] := Nobody;
        goto unlock;
    elsif Broken = "hashed_before_entry" then
        state[next[self]] := "hashed";
    end if;

hand_over_insert:
    locked := "slow";
    hash := hash \union {next[self]};

hand_over_hashed:
    if Broken = "hashed_before_entry" then
        state[self] := "running";
    else
        state[next[self]] := "hashed" || state[self] := "running";
    end if;
    next[self] := Nobody;

\* The owner.
unlock:
    if locked = "held" then
        locked := "free";
        goto lock;
    elsif Broken = "released_before_removal" then
        locked := "free";
    end if;

unlock_remove:
    with t \in hash do
        head := t;
        hash := hash \ {t};
    end with;

unlock_release:
    if Broken # "released_before_removal" then
        locked := "free";
    end if;

unlock_kick:
    if Watches(head) /\ Broken # "kick_forgotten" /\ (Broken = "kick_not_latched" => Asleep(head)) then
        kicked[head] := TRUE;
    end if;
    head := Nobody;
    goto lock;

\* Broken = "head_stores": what head_spin goes on with.
broken_store:
    pending := FALSE;
    locked := "held";
    goto alone;

\* Broken = "entered_after_slow": what head_insert and head_swap are then.
broken_slow:
    if locked = "free" then
        locked := "held";
        goto alone;
    else
        locked := "slow";
    end if;
broken_insert:
    hash := hash \union {self};
    entered := TRUE;
    goto head_halt;
end process;

\* A halt may return for no reason. Nothing makes it.
process world = "world"
begin
wakes:
    while TRUE do
        with t \in {t \in Threads : Asleep(t) /\ ~kicked[t]} do
            kicked[t] := TRUE;
        end with;
    end while;
end process;
end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-31458f763731d3f40e716bd150e8e6c7
VARIABLES tail, pending, locked, hash, next, state, kicked, passed, pc

(* define statement *)
IsFree == ~pending /\ locked = "free"
IsQueuedMode == pending \/ tail = Nobody
IsHead(t) == state[t] \in {"head", "hashed"}

Watches(t) == pc[t] \in {"wait_exchange", "wait_halt", "wait_asleep",
                         "head_look", "head_insert", "head_swap", "head_halt", "head_asleep"}
Asleep(t) == pc[t] \in {"wait_asleep", "head_asleep"}

VARIABLES before, entered, queued_mode, head

vars == << tail, pending, locked, hash, next, state, kicked, passed, pc, 
           before, entered, queued_mode, head >>

ProcSet == (Threads) \cup {"world"}

Init == (* Global variables *)
        /\ tail = Nobody
        /\ pending = FALSE
        /\ locked = "free"
        /\ hash = {}
        /\ next = [t \in Threads |-> Nobody]
        /\ state = [t \in Threads |-> "running"]
        /\ kicked = [t \in Threads |-> FALSE]
        /\ passed = 0
        (* Process thread *)
        /\ before = [self \in Threads |-> Nobody]
        /\ entered = [self \in Threads |-> FALSE]
        /\ queued_mode = [self \in Threads |-> FALSE]
        /\ head = [self \in Threads |-> Nobody]
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "lock"
                                        [] self = "world" -> "wakes"]

lock(self) == /\ pc[self] = "lock"
              /\ IF IsFree /\ tail = Nobody
                    THEN /\ locked' = "held"
                         /\ pc' = [pc EXCEPT ![self] = "unlock"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "steal_look"]
                         /\ UNCHANGED locked
              /\ UNCHANGED << tail, pending, hash, next, state, kicked, passed, 
                              before, entered, queued_mode, head >>

steal_look(self) == /\ pc[self] = "steal_look"
                    /\ \/ /\ IsFree \/ (Broken = "thief_ignores_pending" /\ locked = "free")
                          /\ queued_mode' = [queued_mode EXCEPT ![self] = IsQueuedMode]
                          /\ pc' = [pc EXCEPT ![self] = "steal_take"]
                       \/ /\ ~IsFree /\ (IsQueuedMode \/ Steal # "forever")
                          /\ pc' = [pc EXCEPT ![self] = "join"]
                          /\ UNCHANGED queued_mode
                    /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                    kicked, passed, before, entered, head >>

steal_take(self) == /\ pc[self] = "steal_take"
                    /\ IF locked = "free"
                          THEN /\ locked' = "held"
                               /\ passed' = IF pending THEN passed + 1 ELSE 0
                               /\ queued_mode' = [queued_mode EXCEPT ![self] = FALSE]
                               /\ pc' = [pc EXCEPT ![self] = "unlock"]
                          ELSE /\ IF queued_mode[self] \/ Steal = "once"
                                     THEN /\ queued_mode' = [queued_mode EXCEPT ![self] = FALSE]
                                          /\ pc' = [pc EXCEPT ![self] = "join"]
                                     ELSE /\ \/ /\ pc' = [pc EXCEPT ![self] = "steal_look"]
                                             \/ /\ Steal = "limited"
                                                /\ pc' = [pc EXCEPT ![self] = "join"]
                                          /\ UNCHANGED queued_mode
                               /\ UNCHANGED << locked, passed >>
                    /\ UNCHANGED << tail, pending, hash, next, state, kicked, 
                                    before, entered, head >>

join(self) == /\ pc[self] = "join"
              /\ before' = [before EXCEPT ![self] = tail]
              /\ tail' = self
              /\ IF before'[self] = Nobody
                    THEN /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "link"]
              /\ UNCHANGED << pending, locked, hash, next, state, kicked, 
                              passed, entered, queued_mode, head >>

link(self) == /\ pc[self] = "link"
              /\ next' = [next EXCEPT ![before[self]] = self]
              /\ before' = [before EXCEPT ![self] = Nobody]
              /\ pc' = [pc EXCEPT ![self] = "wait_spin"]
              /\ UNCHANGED << tail, pending, locked, hash, state, kicked, 
                              passed, entered, queued_mode, head >>

wait_spin(self) == /\ pc[self] = "wait_spin"
                   /\ IF IsHead(self)
                         THEN /\ entered' = [entered EXCEPT ![self] = state[self] = "hashed"]
                              /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = "wait_kicks"]
                              /\ UNCHANGED entered
                   /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                   kicked, passed, before, queued_mode, head >>

wait_kicks(self) == /\ pc[self] = "wait_kicks"
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ pc' = [pc EXCEPT ![self] = "wait_exchange"]
                    /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                    passed, before, entered, queued_mode, head >>

wait_exchange(self) == /\ pc[self] = "wait_exchange"
                       /\ IF IsHead(self)
                             THEN /\ entered' = [entered EXCEPT ![self] = state[self] = "hashed"]
                                  /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                                  /\ state' = state
                             ELSE /\ state' = [state EXCEPT ![self] = "halted"]
                                  /\ pc' = [pc EXCEPT ![self] = "wait_halt"]
                                  /\ UNCHANGED entered
                       /\ UNCHANGED << tail, pending, locked, hash, next, 
                                       kicked, passed, before, queued_mode, 
                                       head >>

wait_halt(self) == /\ pc[self] = "wait_halt"
                   /\ IF Broken = "kicks_read_late"
                         THEN /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                              /\ pc' = [pc EXCEPT ![self] = "wait_asleep"]
                         ELSE /\ IF kicked[self]
                                    THEN /\ pc' = [pc EXCEPT ![self] = "wait_awake"]
                                    ELSE /\ pc' = [pc EXCEPT ![self] = "wait_asleep"]
                              /\ UNCHANGED kicked
                   /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                   passed, before, entered, queued_mode, head >>

wait_asleep(self) == /\ pc[self] = "wait_asleep"
                     /\ kicked[self]
                     /\ pc' = [pc EXCEPT ![self] = "wait_awake"]
                     /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                     kicked, passed, before, entered, 
                                     queued_mode, head >>

wait_awake(self) == /\ pc[self] = "wait_awake"
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ IF IsHead(self)
                          THEN /\ entered' = [entered EXCEPT ![self] = state[self] = "hashed"]
                               /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                               /\ state' = state
                          ELSE /\ state' = [state EXCEPT ![self] = "running"]
                               /\ pc' = [pc EXCEPT ![self] = "wait_spin"]
                               /\ UNCHANGED entered
                    /\ UNCHANGED << tail, pending, locked, hash, next, passed, 
                                    before, queued_mode, head >>

head_pending(self) == /\ pc[self] = "head_pending"
                      /\ state' = [state EXCEPT ![self] = "head"]
                      /\ pending' = TRUE
                      /\ passed' = 0
                      /\ pc' = [pc EXCEPT ![self] = "head_spin"]
                      /\ UNCHANGED << tail, locked, hash, next, kicked, before, 
                                      entered, queued_mode, head >>

head_spin(self) == /\ pc[self] = "head_spin"
                   /\ IF locked = "free"
                         THEN /\ IF Broken = "head_stores"
                                    THEN /\ pc' = [pc EXCEPT ![self] = "broken_store"]
                                         /\ UNCHANGED << pending, locked >>
                                    ELSE /\ pending' = FALSE
                                         /\ locked' = "held"
                                         /\ pc' = [pc EXCEPT ![self] = "alone"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = "head_kicks"]
                              /\ UNCHANGED << pending, locked >>
                   /\ UNCHANGED << tail, hash, next, state, kicked, passed, 
                                   before, entered, queued_mode, head >>

head_kicks(self) == /\ pc[self] = "head_kicks"
                    /\ pending' = (Broken = "pending_stays")
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ pc' = [pc EXCEPT ![self] = "head_look"]
                    /\ UNCHANGED << tail, locked, hash, next, state, passed, 
                                    before, entered, queued_mode, head >>

head_look(self) == /\ pc[self] = "head_look"
                   /\ IF locked = "slow"
                         THEN /\ pc' = [pc EXCEPT ![self] = "head_halt"]
                         ELSE /\ IF entered[self] /\ ~EnterAgain
                                    THEN /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                                    ELSE /\ IF Broken = "entered_after_slow"
                                               THEN /\ pc' = [pc EXCEPT ![self] = "broken_slow"]
                                               ELSE /\ pc' = [pc EXCEPT ![self] = "head_insert"]
                   /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                   kicked, passed, before, entered, 
                                   queued_mode, head >>

head_insert(self) == /\ pc[self] = "head_insert"
                     /\ hash' = (hash \union {self})
                     /\ entered' = [entered EXCEPT ![self] = TRUE]
                     /\ pc' = [pc EXCEPT ![self] = "head_swap"]
                     /\ UNCHANGED << tail, pending, locked, next, state, 
                                     kicked, passed, before, queued_mode, head >>

head_swap(self) == /\ pc[self] = "head_swap"
                   /\ IF locked = "free" /\ Broken # "swap_result_ignored"
                         THEN /\ locked' = "slow"
                              /\ pc' = [pc EXCEPT ![self] = "head_won"]
                         ELSE /\ locked' = "slow"
                              /\ pc' = [pc EXCEPT ![self] = "head_halt"]
                   /\ UNCHANGED << tail, pending, hash, next, state, kicked, 
                                   passed, before, entered, queued_mode, head >>

head_halt(self) == /\ pc[self] = "head_halt"
                   /\ state' = [state EXCEPT ![self] = "hashed"]
                   /\ IF Broken = "kicks_read_late"
                         THEN /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                              /\ pc' = [pc EXCEPT ![self] = "head_asleep"]
                         ELSE /\ IF kicked[self]
                                    THEN /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                                    ELSE /\ pc' = [pc EXCEPT ![self] = "head_asleep"]
                              /\ UNCHANGED kicked
                   /\ UNCHANGED << tail, pending, locked, hash, next, passed, 
                                   before, entered, queued_mode, head >>

head_asleep(self) == /\ pc[self] = "head_asleep"
                     /\ kicked[self]
                     /\ pc' = [pc EXCEPT ![self] = "head_pending"]
                     /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                     kicked, passed, before, entered, 
                                     queued_mode, head >>

head_won(self) == /\ pc[self] = "head_won"
                  /\ locked' = "held"
                  /\ hash' = (IF Broken = "entry_stays" THEN hash ELSE hash \ {self})
                  /\ pc' = [pc EXCEPT ![self] = "alone"]
                  /\ UNCHANGED << tail, pending, next, state, kicked, passed, 
                                  before, entered, queued_mode, head >>

alone(self) == /\ pc[self] = "alone"
               /\ entered' = [entered EXCEPT ![self] = FALSE]
               /\ kicked' = [kicked EXCEPT ![self] = FALSE]
               /\ IF tail = self /\ ~pending /\ locked = "held"
                     THEN /\ tail' = Nobody
                          /\ next' = [next EXCEPT ![self] = Nobody]
                          /\ state' = [state EXCEPT ![self] = "running"]
                          /\ pc' = [pc EXCEPT ![self] = "unlock"]
                     ELSE /\ IF Broken = "link_not_awaited" /\ next[self] = Nobody
                                THEN /\ next' = [next EXCEPT ![self] = Nobody]
                                     /\ state' = [state EXCEPT ![self] = "running"]
                                     /\ pc' = [pc EXCEPT ![self] = "unlock"]
                                ELSE /\ pc' = [pc EXCEPT ![self] = "hand_over"]
                                     /\ UNCHANGED << next, state >>
                          /\ tail' = tail
               /\ UNCHANGED << pending, locked, hash, passed, before, 
                               queued_mode, head >>

hand_over(self) == /\ pc[self] = "hand_over"
                   /\ next[self] # Nobody
                   /\ IF state[next[self]] = "running" \/ Broken = "halted_ignored"
                         THEN /\ state' = [state EXCEPT ![next[self]] = "head",
                                                        ![self] = "running"]
                              /\ next' = [next EXCEPT ![self] = Nobody]
                              /\ pc' = [pc EXCEPT ![self] = "unlock"]
                         ELSE /\ IF Broken = "hashed_before_entry"
                                    THEN /\ state' = [state EXCEPT ![next[self]] = "hashed"]
                                    ELSE /\ TRUE
                                         /\ state' = state
                              /\ pc' = [pc EXCEPT ![self] = "hand_over_insert"]
                              /\ next' = next
                   /\ UNCHANGED << tail, pending, locked, hash, kicked, passed, 
                                   before, entered, queued_mode, head >>

hand_over_insert(self) == /\ pc[self] = "hand_over_insert"
                          /\ locked' = "slow"
                          /\ hash' = (hash \union {next[self]})
                          /\ pc' = [pc EXCEPT ![self] = "hand_over_hashed"]
                          /\ UNCHANGED << tail, pending, next, state, kicked, 
                                          passed, before, entered, queued_mode, 
                                          head >>

hand_over_hashed(self) == /\ pc[self] = "hand_over_hashed"
                          /\ IF Broken = "hashed_before_entry"
                                THEN /\ state' = [state EXCEPT ![self] = "running"]
                                ELSE /\ state' = [state EXCEPT ![next[self]] = "hashed",
                                                               ![self] = "running"]
                          /\ next' = [next EXCEPT ![self] = Nobody]
                          /\ pc' = [pc EXCEPT ![self] = "unlock"]
                          /\ UNCHANGED << tail, pending, locked, hash, kicked, 
                                          passed, before, entered, queued_mode, 
                                          head >>

unlock(self) == /\ pc[self] = "unlock"
                /\ IF locked = "held"
                      THEN /\ locked' = "free"
                           /\ pc' = [pc EXCEPT ![self] = "lock"]
                      ELSE /\ IF Broken = "released_before_removal"
                                 THEN /\ locked' = "free"
                                 ELSE /\ TRUE
                                      /\ UNCHANGED locked
                           /\ pc' = [pc EXCEPT ![self] = "unlock_remove"]
                /\ UNCHANGED << tail, pending, hash, next, state, kicked, 
                                passed, before, entered, queued_mode, head >>

unlock_remove(self) == /\ pc[self] = "unlock_remove"
                       /\ \E t \in hash:
                            /\ head' = [head EXCEPT ![self] = t]
                            /\ hash' = hash \ {t}
                       /\ pc' = [pc EXCEPT ![self] = "unlock_release"]
                       /\ UNCHANGED << tail, pending, locked, next, state, 
                                       kicked, passed, before, entered, 
                                       queued_mode >>

unlock_release(self) == /\ pc[self] = "unlock_release"
                        /\ IF Broken # "released_before_removal"
                              THEN /\ locked' = "free"
                              ELSE /\ TRUE
                                   /\ UNCHANGED locked
                        /\ pc' = [pc EXCEPT ![self] = "unlock_kick"]
                        /\ UNCHANGED << tail, pending, hash, next, state, 
                                        kicked, passed, before, entered, 
                                        queued_mode, head >>

unlock_kick(self) == /\ pc[self] = "unlock_kick"
                     /\ IF Watches(head[self]) /\ Broken # "kick_forgotten" /\ (Broken = "kick_not_latched" => Asleep(head[self]))
                           THEN /\ kicked' = [kicked EXCEPT ![head[self]] = TRUE]
                           ELSE /\ TRUE
                                /\ UNCHANGED kicked
                     /\ head' = [head EXCEPT ![self] = Nobody]
                     /\ pc' = [pc EXCEPT ![self] = "lock"]
                     /\ UNCHANGED << tail, pending, locked, hash, next, state, 
                                     passed, before, entered, queued_mode >>

broken_store(self) == /\ pc[self] = "broken_store"
                      /\ pending' = FALSE
                      /\ locked' = "held"
                      /\ pc' = [pc EXCEPT ![self] = "alone"]
                      /\ UNCHANGED << tail, hash, next, state, kicked, passed, 
                                      before, entered, queued_mode, head >>

broken_slow(self) == /\ pc[self] = "broken_slow"
                     /\ IF locked = "free"
                           THEN /\ locked' = "held"
                                /\ pc' = [pc EXCEPT ![self] = "alone"]
                           ELSE /\ locked' = "slow"
                                /\ pc' = [pc EXCEPT ![self] = "broken_insert"]
                     /\ UNCHANGED << tail, pending, hash, next, state, kicked, 
                                     passed, before, entered, queued_mode, 
                                     head >>

broken_insert(self) == /\ pc[self] = "broken_insert"
                       /\ hash' = (hash \union {self})
                       /\ entered' = [entered EXCEPT ![self] = TRUE]
                       /\ pc' = [pc EXCEPT ![self] = "head_halt"]
                       /\ UNCHANGED << tail, pending, locked, next, state, 
                                       kicked, passed, before, queued_mode, 
                                       head >>

thread(self) == lock(self) \/ steal_look(self) \/ steal_take(self)
                   \/ join(self) \/ link(self) \/ wait_spin(self)
                   \/ wait_kicks(self) \/ wait_exchange(self)
                   \/ wait_halt(self) \/ wait_asleep(self)
                   \/ wait_awake(self) \/ head_pending(self)
                   \/ head_spin(self) \/ head_kicks(self)
                   \/ head_look(self) \/ head_insert(self)
                   \/ head_swap(self) \/ head_halt(self)
                   \/ head_asleep(self) \/ head_won(self) \/ alone(self)
                   \/ hand_over(self) \/ hand_over_insert(self)
                   \/ hand_over_hashed(self) \/ unlock(self)
                   \/ unlock_remove(self) \/ unlock_release(self)
                   \/ unlock_kick(self) \/ broken_store(self)
                   \/ broken_slow(self) \/ broken_insert(self)

wakes == /\ pc["world"] = "wakes"
         /\ \E t \in {t \in Threads : Asleep(t) /\ ~kicked[t]}:
              kicked' = [kicked EXCEPT ![t] = TRUE]
         /\ pc' = [pc EXCEPT !["world"] = "wakes"]
         /\ UNCHANGED << tail, pending, locked, hash, next, state, passed, 
                         before, entered, queued_mode, head >>

world == wakes

Next == world
           \/ (\E self \in Threads: thread(self))

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Threads : WF_vars((pc[self] # "lock") /\ thread(self))

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-aa2315373178fbbe1a58682d7174e205

-------------------------------------------------------------------------------
(* Safety *)

Somebody(steps) == \E t \in Threads : pc[t] \in steps

AtMostOne(P(_)) == \A t, u \in Threads : P(t) /\ P(u) => t = u

\* The waiter at the head of the queue, and then as the owner until it hands that over.
AtHead(t) ==
    pc[t] \in {"head_pending", "head_spin", "head_kicks", "head_look", "head_insert", "head_swap",
               "head_halt", "head_asleep", "head_won", "broken_store", "broken_slow", "broken_insert",
               "alone", "hand_over"}

\* From the exchange of the tail to the hand-over.
Claimed(t) ==
    \/ AtHead(t)
    \/ pc[t] \in {"link", "wait_spin", "wait_kicks", "wait_exchange", "wait_halt", "wait_asleep", "wait_awake",
                  "hand_over_insert", "hand_over_hashed"}

\* From the exchange that took the lock to the one, or the store, that frees it.
Owns(t) ==
    \/ pc[t] \in {"head_won", "alone", "hand_over", "hand_over_insert", "hand_over_hashed", "unlock"}
    \/ pc[t] \in {"unlock_remove", "unlock_release"} /\ Broken # "released_before_removal"

TypeOK ==
    /\ tail \in Threads \union {Nobody} /\ pending \in BOOLEAN /\ locked \in {"free", "held", "slow"}
    /\ hash \subseteq Threads
    /\ next \in [Threads -> Threads \union {Nobody}]
    /\ state \in [Threads -> {"running", "halted", "head", "hashed"}]
    /\ kicked \in [Threads -> BOOLEAN]

Exclusion ==
    /\ AtMostOne(Owns)
    /\ (locked = "free") = (\A t \in Threads : ~Owns(t))

I1_OneEntry == Cardinality(hash) <= 1

\* But for somebody who is just entering it, or has taken it out.
I1_EntryWhileSlow ==
    /\ locked = "slow" => hash # {} \/ Somebody({"unlock_release", "head_won"})
    /\ hash # {} => locked = "slow" \/ Somebody({"head_swap"})

I2_UnlockerFindsEntry == Somebody({"unlock_remove"}) => hash # {}

I3_PendingIsTheHeads == pending = Somebody({"head_spin", "head_kicks", "broken_store"})

\* While pending is set, each of the others takes the lock once at most: it looked before.
I3_NeverPassedForLong == passed < Cardinality(Threads)

I4_OneHead == AtMostOne(AtHead)

I5_NodesOfWaiters ==
    /\ tail # Nobody => Claimed(tail)
    /\ \A t \in hash : Claimed(t)
    /\ \A t \in Threads :
        /\ next[t] # Nobody => Claimed(t) /\ Claimed(next[t])
        /\ before[t] # Nobody => Claimed(before[t])

\* Who sleeps can count on somebody who is awake: an owner, a kicker, a newcomer.
SomebodyIsAwake ==
    (\E t \in Threads : Asleep(t)) => \E t \in Threads : pc[t] # "lock" /\ (Asleep(t) => kicked[t])

-------------------------------------------------------------------------------
(* Progress *)

Wants(t) == pc[t] = "steal_look"
Gets(t) == pc[t] = "unlock"

\* Who tries again and again gets it once. More than that an unfair lock does not promise to those outside its queue.
RacesAreWon ==
    /\ Spec
    /\ \A t \in Threads : SF_vars(head_spin(t) /\ locked = "free")
    /\ SF_vars(steal_look(Me))
    /\ SF_vars(steal_take(Me) /\ locked = "free")

\* Now and then the lock becomes free while its head spins: spins are longer than some critical sections.
SpinsOutlastOwners ==
    []<>Somebody({"head_spin"}) => []<>(locked = "free" /\ Somebody({"head_spin"}))

FairSpec == RacesAreWon /\ SpinsOutlastOwners

Progress == Wants(Me) ~> Gets(Me)

\* As long as anybody wants it, somebody gets it: under Spec, with no assumption but that who can go on does.
NoStandstill == []<>(Somebody({"unlock"}) \/ \A t \in Threads : pc[t] = "lock")

Symmetry == Permutations(Threads)

===============================================================================
