--------------------------------- MODULE Mutex ---------------------------------
(***************************************************************************)
(* The mutex with its hand-over: crates/overlock-family/src/sleep/mutex.rs,  *)
(* mutex/word.rs, mutex/wait.rs, and the sleep of wait_list.rs. Steps are  *)
(* named after their functions, invariants as on the page of mutex.rs.     *)
(*                                                                         *)
(* One mutex, one node a thread. Newcomers, and those in the spin queue,   *)
(* are thieves: they take the mutex whenever it is free. README.md says    *)
(* what else is left out, and why.                                         *)
(***************************************************************************)
EXTENDS FiniteSets, Naturals, Sequences, TLC

CONSTANTS
    Threads,      \* each with a node of the same name
    Nobody,
    Me,           \* the thread whose progress is checked; all are alike
    Timed,        \* waiters may give up
    Relock,       \* an owner may try to lock once more, with a deadline
    FairUnlocks,  \* unlock_fair is used too
    Broken        \* "nothing", or what is wrong

ASSUME {Timed, Relock, FairUnlocks} \subseteq BOOLEAN /\ Me \in Threads

(* --algorithm mutex
variables
    \* The owner word.
    owner = Nobody, waiters = FALSE, handoff = FALSE, pickup = FALSE,
    \* The list of sleepers, and its guard.
    sleepers = << >>, guard = Nobody,
    \* Node::state; and whether Node::kicks is not what its waiter has read.
    state = [t \in Threads |-> "awake"],
    kicked = [t \in Threads |-> FALSE],
    \* How often each thread has acquired, less how often it has released.
    holds = [t \in Threads |-> 0];

define
    IsFree == owner = Nobody \/ (Broken = "pickup_ignored" /\ pickup)
    IsGivenTo(t) == owner = t /\ (pickup \/ Broken = "pickup_missing")
    IsFor(t) == IsFree \/ IsGivenTo(t)
    HasFlags == waiters \/ handoff \/ pickup
    First == Head(sleepers)
    Without(t) == SelectSeq(sleepers, LAMBDA u : u # t)
    \* Has read its kicks, and will compare them in its halt, or does so asleep.
    Watches(t) == pc[t] \in {"sleep_look", "sleep_halt", "sleep_asleep"}
    Asleep(t) == pc[t] = "sleep_asleep"
end define;

\* The exchange of a word that is for us.
macro exchange() begin
    owner := self;
    pickup := FALSE;
    holds[self] := holds[self] + 1;
end macro;

macro acquire_guard() begin
    await guard = Nobody;
    guard := self;
end macro;

fair process thread \in Threads
variables
    taken = FALSE,    \* while we leave the list: the mutex is ours
    first = Nobody;   \* an unlocker: whom it deals with
begin
\* lock_fast. Nothing makes a thread want the mutex.
lock:-
    if IsFree /\ ~HasFlags then
        exchange();
        goto unlock;
    end if;

\* Attempts, now and as the head of the spin queue, until one is in vain.
lock_slow:
    if IsFree then
        exchange();
        goto unlock;
    elsif Timed then
        either
            goto in_vain;
        or
            skip;
        end either;
    end if;

join:
    acquire_guard();
    state[self] := "waiting";
    sleepers := Append(sleepers, self);
join_flag:
    waiters := TRUE;
    if Broken = "no_attempt_after_join" then
        guard := Nobody;
        goto sleep_kicks;
    end if;
join_done:
    guard := Nobody;

last_attempt:
    if IsFor(self) then
        exchange();
        goto leave;
    end if;

sleep_kicks:
    kicked[self] := FALSE;
sleep_look:
    if state[self] = "awake" then
        goto take_or_ask;
    elsif Timed \/ holds[self] > 0 then
        either
            goto give_up;
        or
            skip;
        end either;
    end if;
sleep_halt:
    if Broken = "kicks_read_late" then
        kicked[self] := FALSE;
    elsif kicked[self] then
        goto sleep_kicks;
    end if;
sleep_asleep:
    await kicked[self];
    goto sleep_kicks;

take_or_ask:
    if IsFor(self) then
        exchange();
        goto leave;
    else
        handoff := TRUE;
    end if;

spin_awake:
    if IsFor(self) then
        exchange();
        goto leave;
    end if;

fall_asleep:
    acquire_guard();
    state[self] := "waiting";
fall_asleep_done:
    guard := Nobody;
    if Broken = "attempt_before_asleep" then
        goto sleep_kicks;
    else
        goto last_attempt;
    end if;

give_up:
    acquire_guard();
give_up_attempt:
    if IsFor(self) /\ Broken # "given_up_without_attempt" then
        exchange();
        taken := TRUE;
    end if;
    goto leave_unlink;

leave:
    acquire_guard();
    taken := TRUE;
leave_unlink:
    sleepers := Without(self);
    state[self] := "awake";
    if sleepers = << >> /\ Broken # "flags_stay" then
        waiters := FALSE || handoff := FALSE || pickup := FALSE;
    end if;
leave_done:
    kicked[self] := FALSE;
    guard := Nobody;
    if taken then
        taken := FALSE;
        goto unlock;
    end if;

\* Of an attempt in vain.
in_vain:
    if holds[self] = 0 then
        goto lock;
    end if;

\* The owner. unlock_fast.
unlock:
    either
        await Relock /\ holds[self] = 1;
        goto lock_slow;
    or
        if ~HasFlags then
            owner := Nobody;
            holds[self] := holds[self] - 1;
            goto lock;
        elsif Broken = "released_before_guard" then
            goto broken_release;
        end if;
    end either;

unlock_slow:
    await guard = Nobody;
    if sleepers = << >> then
        goto unlock;
    else
        guard := self;
        first := First;
    end if;
release:
    either
        await handoff \/ FairUnlocks;
        if Broken = "handoff_ignored" then
            owner := Nobody || waiters := TRUE || handoff := FALSE || pickup := FALSE;
        else
            owner := first || waiters := TRUE || handoff := FALSE || pickup := Broken # "pickup_missing";
        end if;
    or
        await ~handoff;
        owner := Nobody || waiters := TRUE || handoff := FALSE || pickup := FALSE;
    end either;
    holds[self] := holds[self] - 1;
unlock_tell:
    if state[first] = "waiting" then
        state[first] := "awake";
    else
        first := Nobody;
    end if;
unlock_done:
    guard := Nobody;
    if first = Nobody \/ Broken = "kick_forgotten" then
        first := Nobody;
        goto lock;
    end if;
unlock_kick:
    if Watches(first) then
        kicked[first] := TRUE;
    end if;
    first := Nobody;
    goto lock;

\* Broken = "released_before_guard": the order of the published form.
broken_release:
    owner := Nobody;
    holds[self] := holds[self] - 1;
broken_guard:
    await guard = Nobody;
    if sleepers = << >> then
        goto lock;
    else
        guard := self;
        first := First;
        goto unlock_tell;
    end if;
end process;

\* A halt may return for no reason, or at its deadline. Nothing makes it.
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
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-a327bb74562d4eebbd82c3e65e41cee6
VARIABLES owner, waiters, handoff, pickup, sleepers, guard, state, kicked, 
          holds, pc

(* define statement *)
IsFree == owner = Nobody \/ (Broken = "pickup_ignored" /\ pickup)
IsGivenTo(t) == owner = t /\ (pickup \/ Broken = "pickup_missing")
IsFor(t) == IsFree \/ IsGivenTo(t)
HasFlags == waiters \/ handoff \/ pickup
First == Head(sleepers)
Without(t) == SelectSeq(sleepers, LAMBDA u : u # t)

Watches(t) == pc[t] \in {"sleep_look", "sleep_halt", "sleep_asleep"}
Asleep(t) == pc[t] = "sleep_asleep"

VARIABLES taken, first

vars == << owner, waiters, handoff, pickup, sleepers, guard, state, kicked, 
           holds, pc, taken, first >>

ProcSet == (Threads) \cup {"world"}

Init == (* Global variables *)
        /\ owner = Nobody
        /\ waiters = FALSE
        /\ handoff = FALSE
        /\ pickup = FALSE
        /\ sleepers = << >>
        /\ guard = Nobody
        /\ state = [t \in Threads |-> "awake"]
        /\ kicked = [t \in Threads |-> FALSE]
        /\ holds = [t \in Threads |-> 0]
        (* Process thread *)
        /\ taken = [self \in Threads |-> FALSE]
        /\ first = [self \in Threads |-> Nobody]
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "lock"
                                        [] self = "world" -> "wakes"]

lock(self) == /\ pc[self] = "lock"
              /\ IF IsFree /\ ~HasFlags
                    THEN /\ owner' = self
                         /\ pickup' = FALSE
                         /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                         /\ pc' = [pc EXCEPT ![self] = "unlock"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "lock_slow"]
                         /\ UNCHANGED << owner, pickup, holds >>
              /\ UNCHANGED << waiters, handoff, sleepers, guard, state, kicked, 
                              taken, first >>

lock_slow(self) == /\ pc[self] = "lock_slow"
                   /\ IF IsFree
                         THEN /\ owner' = self
                              /\ pickup' = FALSE
                              /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                              /\ pc' = [pc EXCEPT ![self] = "unlock"]
                         ELSE /\ IF Timed
                                    THEN /\ \/ /\ pc' = [pc EXCEPT ![self] = "in_vain"]
                                            \/ /\ TRUE
                                               /\ pc' = [pc EXCEPT ![self] = "join"]
                                    ELSE /\ pc' = [pc EXCEPT ![self] = "join"]
                              /\ UNCHANGED << owner, pickup, holds >>
                   /\ UNCHANGED << waiters, handoff, sleepers, guard, state, 
                                   kicked, taken, first >>

join(self) == /\ pc[self] = "join"
              /\ guard = Nobody
              /\ guard' = self
              /\ state' = [state EXCEPT ![self] = "waiting"]
              /\ sleepers' = Append(sleepers, self)
              /\ pc' = [pc EXCEPT ![self] = "join_flag"]
              /\ UNCHANGED << owner, waiters, handoff, pickup, kicked, holds, 
                              taken, first >>

join_flag(self) == /\ pc[self] = "join_flag"
                   /\ waiters' = TRUE
                   /\ IF Broken = "no_attempt_after_join"
                         THEN /\ guard' = Nobody
                              /\ pc' = [pc EXCEPT ![self] = "sleep_kicks"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = "join_done"]
                              /\ guard' = guard
                   /\ UNCHANGED << owner, handoff, pickup, sleepers, state, 
                                   kicked, holds, taken, first >>

join_done(self) == /\ pc[self] = "join_done"
                   /\ guard' = Nobody
                   /\ pc' = [pc EXCEPT ![self] = "last_attempt"]
                   /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                   state, kicked, holds, taken, first >>

last_attempt(self) == /\ pc[self] = "last_attempt"
                      /\ IF IsFor(self)
                            THEN /\ owner' = self
                                 /\ pickup' = FALSE
                                 /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                                 /\ pc' = [pc EXCEPT ![self] = "leave"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "sleep_kicks"]
                                 /\ UNCHANGED << owner, pickup, holds >>
                      /\ UNCHANGED << waiters, handoff, sleepers, guard, state, 
                                      kicked, taken, first >>

sleep_kicks(self) == /\ pc[self] = "sleep_kicks"
                     /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                     /\ pc' = [pc EXCEPT ![self] = "sleep_look"]
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     guard, state, holds, taken, first >>

sleep_look(self) == /\ pc[self] = "sleep_look"
                    /\ IF state[self] = "awake"
                          THEN /\ pc' = [pc EXCEPT ![self] = "take_or_ask"]
                          ELSE /\ IF Timed \/ holds[self] > 0
                                     THEN /\ \/ /\ pc' = [pc EXCEPT ![self] = "give_up"]
                                             \/ /\ TRUE
                                                /\ pc' = [pc EXCEPT ![self] = "sleep_halt"]
                                     ELSE /\ pc' = [pc EXCEPT ![self] = "sleep_halt"]
                    /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                    guard, state, kicked, holds, taken, first >>

sleep_halt(self) == /\ pc[self] = "sleep_halt"
                    /\ IF Broken = "kicks_read_late"
                          THEN /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                               /\ pc' = [pc EXCEPT ![self] = "sleep_asleep"]
                          ELSE /\ IF kicked[self]
                                     THEN /\ pc' = [pc EXCEPT ![self] = "sleep_kicks"]
                                     ELSE /\ pc' = [pc EXCEPT ![self] = "sleep_asleep"]
                               /\ UNCHANGED kicked
                    /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                    guard, state, holds, taken, first >>

sleep_asleep(self) == /\ pc[self] = "sleep_asleep"
                      /\ kicked[self]
                      /\ pc' = [pc EXCEPT ![self] = "sleep_kicks"]
                      /\ UNCHANGED << owner, waiters, handoff, pickup, 
                                      sleepers, guard, state, kicked, holds, 
                                      taken, first >>

take_or_ask(self) == /\ pc[self] = "take_or_ask"
                     /\ IF IsFor(self)
                           THEN /\ owner' = self
                                /\ pickup' = FALSE
                                /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                                /\ pc' = [pc EXCEPT ![self] = "leave"]
                                /\ UNCHANGED handoff
                           ELSE /\ handoff' = TRUE
                                /\ pc' = [pc EXCEPT ![self] = "spin_awake"]
                                /\ UNCHANGED << owner, pickup, holds >>
                     /\ UNCHANGED << waiters, sleepers, guard, state, kicked, 
                                     taken, first >>

spin_awake(self) == /\ pc[self] = "spin_awake"
                    /\ IF IsFor(self)
                          THEN /\ owner' = self
                               /\ pickup' = FALSE
                               /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                               /\ pc' = [pc EXCEPT ![self] = "leave"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "fall_asleep"]
                               /\ UNCHANGED << owner, pickup, holds >>
                    /\ UNCHANGED << waiters, handoff, sleepers, guard, state, 
                                    kicked, taken, first >>

fall_asleep(self) == /\ pc[self] = "fall_asleep"
                     /\ guard = Nobody
                     /\ guard' = self
                     /\ state' = [state EXCEPT ![self] = "waiting"]
                     /\ pc' = [pc EXCEPT ![self] = "fall_asleep_done"]
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     kicked, holds, taken, first >>

fall_asleep_done(self) == /\ pc[self] = "fall_asleep_done"
                          /\ guard' = Nobody
                          /\ IF Broken = "attempt_before_asleep"
                                THEN /\ pc' = [pc EXCEPT ![self] = "sleep_kicks"]
                                ELSE /\ pc' = [pc EXCEPT ![self] = "last_attempt"]
                          /\ UNCHANGED << owner, waiters, handoff, pickup, 
                                          sleepers, state, kicked, holds, 
                                          taken, first >>

give_up(self) == /\ pc[self] = "give_up"
                 /\ guard = Nobody
                 /\ guard' = self
                 /\ pc' = [pc EXCEPT ![self] = "give_up_attempt"]
                 /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                 state, kicked, holds, taken, first >>

give_up_attempt(self) == /\ pc[self] = "give_up_attempt"
                         /\ IF IsFor(self) /\ Broken # "given_up_without_attempt"
                               THEN /\ owner' = self
                                    /\ pickup' = FALSE
                                    /\ holds' = [holds EXCEPT ![self] = holds[self] + 1]
                                    /\ taken' = [taken EXCEPT ![self] = TRUE]
                               ELSE /\ TRUE
                                    /\ UNCHANGED << owner, pickup, holds, 
                                                    taken >>
                         /\ pc' = [pc EXCEPT ![self] = "leave_unlink"]
                         /\ UNCHANGED << waiters, handoff, sleepers, guard, 
                                         state, kicked, first >>

leave(self) == /\ pc[self] = "leave"
               /\ guard = Nobody
               /\ guard' = self
               /\ taken' = [taken EXCEPT ![self] = TRUE]
               /\ pc' = [pc EXCEPT ![self] = "leave_unlink"]
               /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                               state, kicked, holds, first >>

leave_unlink(self) == /\ pc[self] = "leave_unlink"
                      /\ sleepers' = Without(self)
                      /\ state' = [state EXCEPT ![self] = "awake"]
                      /\ IF sleepers' = << >> /\ Broken # "flags_stay"
                            THEN /\ /\ handoff' = FALSE
                                    /\ pickup' = FALSE
                                    /\ waiters' = FALSE
                            ELSE /\ TRUE
                                 /\ UNCHANGED << waiters, handoff, pickup >>
                      /\ pc' = [pc EXCEPT ![self] = "leave_done"]
                      /\ UNCHANGED << owner, guard, kicked, holds, taken, 
                                      first >>

leave_done(self) == /\ pc[self] = "leave_done"
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ guard' = Nobody
                    /\ IF taken[self]
                          THEN /\ taken' = [taken EXCEPT ![self] = FALSE]
                               /\ pc' = [pc EXCEPT ![self] = "unlock"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "in_vain"]
                               /\ taken' = taken
                    /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                    state, holds, first >>

in_vain(self) == /\ pc[self] = "in_vain"
                 /\ IF holds[self] = 0
                       THEN /\ pc' = [pc EXCEPT ![self] = "lock"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "unlock"]
                 /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                 guard, state, kicked, holds, taken, first >>

unlock(self) == /\ pc[self] = "unlock"
                /\ \/ /\ Relock /\ holds[self] = 1
                      /\ pc' = [pc EXCEPT ![self] = "lock_slow"]
                      /\ UNCHANGED <<owner, holds>>
                   \/ /\ IF ~HasFlags
                            THEN /\ owner' = Nobody
                                 /\ holds' = [holds EXCEPT ![self] = holds[self] - 1]
                                 /\ pc' = [pc EXCEPT ![self] = "lock"]
                            ELSE /\ IF Broken = "released_before_guard"
                                       THEN /\ pc' = [pc EXCEPT ![self] = "broken_release"]
                                       ELSE /\ pc' = [pc EXCEPT ![self] = "unlock_slow"]
                                 /\ UNCHANGED << owner, holds >>
                /\ UNCHANGED << waiters, handoff, pickup, sleepers, guard, 
                                state, kicked, taken, first >>

unlock_slow(self) == /\ pc[self] = "unlock_slow"
                     /\ guard = Nobody
                     /\ IF sleepers = << >>
                           THEN /\ pc' = [pc EXCEPT ![self] = "unlock"]
                                /\ UNCHANGED << guard, first >>
                           ELSE /\ guard' = self
                                /\ first' = [first EXCEPT ![self] = First]
                                /\ pc' = [pc EXCEPT ![self] = "release"]
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     state, kicked, holds, taken >>

release(self) == /\ pc[self] = "release"
                 /\ \/ /\ handoff \/ FairUnlocks
                       /\ IF Broken = "handoff_ignored"
                             THEN /\ /\ handoff' = FALSE
                                     /\ owner' = Nobody
                                     /\ pickup' = FALSE
                                     /\ waiters' = TRUE
                             ELSE /\ /\ handoff' = FALSE
                                     /\ owner' = first[self]
                                     /\ pickup' = (Broken # "pickup_missing")
                                     /\ waiters' = TRUE
                    \/ /\ ~handoff
                       /\ /\ handoff' = FALSE
                          /\ owner' = Nobody
                          /\ pickup' = FALSE
                          /\ waiters' = TRUE
                 /\ holds' = [holds EXCEPT ![self] = holds[self] - 1]
                 /\ pc' = [pc EXCEPT ![self] = "unlock_tell"]
                 /\ UNCHANGED << sleepers, guard, state, kicked, taken, first >>

unlock_tell(self) == /\ pc[self] = "unlock_tell"
                     /\ IF state[first[self]] = "waiting"
                           THEN /\ state' = [state EXCEPT ![first[self]] = "awake"]
                                /\ first' = first
                           ELSE /\ first' = [first EXCEPT ![self] = Nobody]
                                /\ state' = state
                     /\ pc' = [pc EXCEPT ![self] = "unlock_done"]
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     guard, kicked, holds, taken >>

unlock_done(self) == /\ pc[self] = "unlock_done"
                     /\ guard' = Nobody
                     /\ IF first[self] = Nobody \/ Broken = "kick_forgotten"
                           THEN /\ first' = [first EXCEPT ![self] = Nobody]
                                /\ pc' = [pc EXCEPT ![self] = "lock"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "unlock_kick"]
                                /\ first' = first
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     state, kicked, holds, taken >>

unlock_kick(self) == /\ pc[self] = "unlock_kick"
                     /\ IF Watches(first[self])
                           THEN /\ kicked' = [kicked EXCEPT ![first[self]] = TRUE]
                           ELSE /\ TRUE
                                /\ UNCHANGED kicked
                     /\ first' = [first EXCEPT ![self] = Nobody]
                     /\ pc' = [pc EXCEPT ![self] = "lock"]
                     /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, 
                                     guard, state, holds, taken >>

broken_release(self) == /\ pc[self] = "broken_release"
                        /\ owner' = Nobody
                        /\ holds' = [holds EXCEPT ![self] = holds[self] - 1]
                        /\ pc' = [pc EXCEPT ![self] = "broken_guard"]
                        /\ UNCHANGED << waiters, handoff, pickup, sleepers, 
                                        guard, state, kicked, taken, first >>

broken_guard(self) == /\ pc[self] = "broken_guard"
                      /\ guard = Nobody
                      /\ IF sleepers = << >>
                            THEN /\ pc' = [pc EXCEPT ![self] = "lock"]
                                 /\ UNCHANGED << guard, first >>
                            ELSE /\ guard' = self
                                 /\ first' = [first EXCEPT ![self] = First]
                                 /\ pc' = [pc EXCEPT ![self] = "unlock_tell"]
                      /\ UNCHANGED << owner, waiters, handoff, pickup, 
                                      sleepers, state, kicked, holds, taken >>

thread(self) == lock(self) \/ lock_slow(self) \/ join(self)
                   \/ join_flag(self) \/ join_done(self)
                   \/ last_attempt(self) \/ sleep_kicks(self)
                   \/ sleep_look(self) \/ sleep_halt(self)
                   \/ sleep_asleep(self) \/ take_or_ask(self)
                   \/ spin_awake(self) \/ fall_asleep(self)
                   \/ fall_asleep_done(self) \/ give_up(self)
                   \/ give_up_attempt(self) \/ leave(self)
                   \/ leave_unlink(self) \/ leave_done(self)
                   \/ in_vain(self) \/ unlock(self) \/ unlock_slow(self)
                   \/ release(self) \/ unlock_tell(self)
                   \/ unlock_done(self) \/ unlock_kick(self)
                   \/ broken_release(self) \/ broken_guard(self)

wakes == /\ pc["world"] = "wakes"
         /\ \E t \in {t \in Threads : Asleep(t) /\ ~kicked[t]}:
              kicked' = [kicked EXCEPT ![t] = TRUE]
         /\ pc' = [pc EXCEPT !["world"] = "wakes"]
         /\ UNCHANGED << owner, waiters, handoff, pickup, sleepers, guard, 
                         state, holds, taken, first >>

world == wakes

Next == world
           \/ (\E self \in Threads: thread(self))

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Threads : WF_vars((pc[self] # "lock") /\ thread(self))

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-81e22577a481a9ccce5fcda4b6e79c63

-------------------------------------------------------------------------------
(* Safety *)

InList(t) == \E i \in DOMAIN sleepers : sleepers[i] = t

\* Has freed the mutex, or given it away, and is not done with it.
Releasing(t) == pc[t] \in {"unlock_tell", "unlock_done", "broken_guard"}

TypeOK ==
    /\ owner \in Threads \union {Nobody} /\ guard \in Threads \union {Nobody}
    /\ {waiters, handoff, pickup} \subseteq BOOLEAN
    /\ \A t, i \in DOMAIN sleepers : sleepers[t] = sleepers[i] => t = i
    /\ state \in [Threads -> {"waiting", "awake"}]
    /\ kicked \in [Threads -> BOOLEAN]

Exclusion ==
    /\ \A t \in Threads : holds[t] > 0 => holds[t] = 1 /\ owner = t /\ ~pickup
    /\ \A t, u \in Threads : holds[t] > 0 /\ holds[u] > 0 => t = u

M1_FlagWhileSomebodyWaits == guard = Nobody => waiters = (sleepers # << >>)

M2_AskedOfAnOwner == handoff => owner # Nobody
M2_GivenToTheFirst == pickup => sleepers # << >> /\ owner = First

\* What was asked for goes to the first sleeper, or is asked for no more since nobody waits.
M2_NeverFreeOnTheWay == [][handoff /\ ~handoff' => pickup' \/ sleepers' = << >>]_vars
M2_TakenByTheFirst == [][pickup /\ ~pickup' => owner' = owner /\ holds'[owner] = 1]_vars

M3_FirstStaysFirst ==
    [][\A t \in Threads : sleepers # << >> /\ First = t /\ sleepers' # << >> /\ Head(sleepers') # t
        => pc[t] = "leave_unlink"]_vars

M4_FirstIsTold ==
    guard = Nobody /\ sleepers # << >> /\ (owner = Nobody \/ pickup) =>
        state[First] = "awake" \/ pc[First] = "last_attempt"

\* Nobody gets past the guard of an unlock that has released: the flag is there, and stays.
M5_NextOwnerMeetsTheGuard == \A t \in Threads : Releasing(t) => guard = t /\ waiters

\* Who sleeps can count on somebody who is awake, or has a deadline.
SomebodyIsAwake ==
    (\E t \in Threads : Asleep(t)) =>
        \E t \in Threads : pc[t] # "lock" /\ (Asleep(t) => kicked[t] \/ holds[t] > 0)

-------------------------------------------------------------------------------
(* Progress *)

\* The guard is a test-and-set byte: who tries again and again gets it once.
FairSpec ==
    /\ Spec
    /\ \A t \in Threads : SF_vars(thread(t) /\ guard = Nobody /\ guard' = t)

\* Whoever wants the mutex gets it, or has given up.
Progress == pc[Me] = "lock_slow" ~> pc[Me] = "unlock" \/ (Timed /\ pc[Me] = "lock")

Symmetry == Permutations(Threads)

===============================================================================
