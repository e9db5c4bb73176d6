-------------------------------- MODULE Overlock --------------------------------
(***************************************************************************)
(* The recommended mutex: crates/overlock-core/src/sleep/overlock.rs.      *)
(* Steps are named after its functions, invariants as on its page.         *)
(* README.md says what is left out, and why.                               *)
(***************************************************************************)
EXTENDS FiniteSets, Naturals, Sequences, TLC

CONSTANTS
    Threads,
    Nobody,
    Me,           \* the thread whose progress is checked; all are alike
    Timed,        \* waiters may give up
    Surplus,      \* a sleep may end for no reason
    FairUnlocks,  \* unlock_fair is used too
    Adopts,       \* threads wait for a condition variable, and are moved to the sleepers
    Patient,      \* newcomers never take a handoff back
    Broken        \* "nothing", or what is wrong

ASSUME {Timed, Surplus, FairUnlocks, Adopts, Patient} \subseteq BOOLEAN /\ Me \in Threads

(* --algorithm overlock
variables
    \* Byte 0 is all but the count.
    word = [locked |-> FALSE, wake |-> FALSE, handoff |-> FALSE, sleepers |-> 0],
    \* The operating system's queue of those that sleep.
    queue = << >>,
    \* Those that sleep for a condition variable, and those whose adoption is done.
    parked = {}, adopted = {},
    \* The threads that the word counts.
    counted = {},
    \* What each thread is about to sleep on, or sleeps on.
    expected = [t \in Threads |-> Nobody],
    \* For the properties: who has the lock.
    owner = Nobody;

define
    MayTake(t) == ~word.locked /\ (~word.handoff \/ t \in counted)
    HandedOff == ~word.locked /\ word.handoff
    \* Contender::leave.
    Left(w) ==
        [w EXCEPT !.sleepers = @ - 1,
                  !.wake = w.sleepers > 1 \/ (@ /\ Broken = "wake_stays"),
                  !.handoff = @ /\ (w.sleepers > 1 \/ Broken = "request_stays")]
    \* Contender::own.
    Owned(t) ==
        LET taken == [word EXCEPT !.locked = TRUE]
            left == Left([taken EXCEPT !.handoff = @ /\ Broken = "handoff_stays"])
        IN IF t \notin counted THEN taken
           ELSE IF Broken = "owner_without_wake" THEN [left EXCEPT !.wake = FALSE]
           ELSE left
    \* The same for a newcomer without patience.
    TakenBack(t) ==
        [Owned(t) EXCEPT !.wake = @ \/ Broken # "impatient_wakes_nobody",
                         !.handoff = @ /\ Broken # "impatient_drops_request"]
    Asleep(t) == \E i \in DOMAIN queue : queue[i] = t
    Without(t) == SelectSeq(queue, LAMBDA u : u # t)
end define;

\* An acquisition by a waiter.
macro acquire(new) begin
    word := new;
    counted := counted \ {self};
    owner := self;
end macro;

\* Wakes a sleeper.
macro kick_one() begin
    if queue # << >> then queue := Tail(queue); end if;
end macro;

fair process thread \in Threads
variables fairly = FALSE, adoptee = Nobody;
begin
lock:
    while TRUE do
        either
            if ~word.locked /\ ~word.wake /\ (~word.handoff \/ Broken = "fast_path_ignores_handoff") then
                word.locked := TRUE;
                owner := self;
                goto unlock;
            end if;
        or
            await Adopts;
            goto wait;
        or
            await Adopts;
            goto notify;
        end either;
spin:
        if MayTake(self) then
            acquire(Owned(self));
            goto unlock;
        end if;
sleep:
        if MayTake(self) /\ Broken \notin {"no_look", "leaver_leaves_it"} then
            goto spin;
        else
            either
                await Timed;
                if self \in counted then
                    word := IF Broken = "leaver_without_wake" THEN [Left(word) EXCEPT !.wake = FALSE] ELSE Left(word);
                    counted := counted \ {self};
                end if;
                goto lock;
            or
                await Broken # "leaver_leaves_it" \/ ~MayTake(self);
                if ~word.locked /\ self \notin counted then
                    either
                        \* It gives its CPU up for a while.
                        goto sleep;
                    or
                        await HandedOff /\ ~Patient;
                        expected[self] := word;
                        goto take_back;
                    end either;
                else
                    with asks \in {a \in BOOLEAN : a => self \in counted} do
                        word := [word EXCEPT !.sleepers = IF self \in counted THEN @ ELSE @ + 1,
                                             !.handoff = @ \/ asks,
                                             !.wake = @ \/ IF self \in counted THEN Broken # "sleeper_without_wake"
                                                           ELSE Broken = "join_without_wake" => word.sleepers = 0];
                        counted := counted \union {self};
                        expected[self] := word;
                        goto halt;
                    end with;
                end if;
            end either;
        end if;
halt:
        if word # expected[self] /\ Broken # "halt_without_look" then
            expected[self] := Nobody;
            goto sleep;
        else
            queue := Append(queue, self);
        end if;
asleep:
        await ~Asleep(self);
        expected[self] := Nobody;
        goto spin;
take_back:
        if word = expected[self] \/ Broken = "takes_back_unseen" then
            acquire(TakenBack(self));
            expected[self] := Nobody;
        else
            expected[self] := Nobody;
            goto sleep;
        end if;
unlock:
        either
            await FairUnlocks;
            fairly := TRUE;
        or
            await Adopts;
            goto notify;
        or
            if Broken = "unlock_stores" /\ ~word.wake /\ ~word.handoff then
                goto broken_store;
            elsif Broken = "kick_before_release" /\ word.wake then
                goto broken_kick;
            elsif Broken = "unlock_exchanges" then
                with wakes = word.wake do
                    word := [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.handoff = FALSE];
                    owner := Nobody;
                    if wakes then goto kick; else goto lock; end if;
                end with;
            elsif ~word.wake /\ ~word.handoff then
                word.locked := FALSE;
                owner := Nobody;
                goto lock;
            end if;
        end either;
unlock_slow:
        owner := Nobody;
        with wakes = word.wake do
            word := [word EXCEPT !.locked = FALSE, !.wake = @ /\ Broken = "unlock_leaves_wake",
                                 !.handoff = (@ /\ Broken # "request_dropped")
                                             \/ (fairly /\ (word.sleepers > 0 \/ Broken = "fair_to_nobody"))];
            fairly := FALSE;
            if ~wakes \/ Broken = "kick_forgotten" then goto lock; end if;
        end with;
kick:
        kick_one();
        goto lock;
broken_store:
        word := [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.handoff = FALSE];
        owner := Nobody;
        goto lock;
broken_kick:
        kick_one();
broken_release:
        word := [word EXCEPT !.locked = FALSE, !.wake = FALSE];
        owner := Nobody;
        goto lock;
\* Condvar::wait. The waiter has released the lock, as `unlock` does.
wait:
        parked := parked \union {self};
waiting:
        await self \notin parked /\ ~Asleep(self) /\ (self \in counted => self \in adopted);
        adopted := adopted \ {self};
        expected[self] := Nobody;
        if self \in counted then goto spin; else goto lock; end if;
\* Condvar::notify_one, by the owner or by another thread.
notify:
        either
            with t \in parked \ counted do
                if word.locked \/ Broken = "adopts_beside_a_free_lock" then
                    word := [word EXCEPT !.sleepers = @ + 1, !.wake = @ \/ Broken # "adopter_without_wake"];
                    expected[t] := word;
                    counted := counted \union {t};
                    adoptee := t;
                    if Broken = "adopter_looks_before_the_requeue" then goto recheck; end if;
                else
                    parked := parked \ {t};
                    if owner = self then goto unlock; else goto lock; end if;
                end if;
            end with;
        or
            await parked \subseteq counted;
            if owner = self then goto unlock; else goto lock; end if;
        end either;
requeue:
        if adoptee \in parked then
            parked := parked \ {adoptee};
            queue := Append(queue, adoptee);
        end if;
        if Broken = "adopter_looks_before_the_requeue" then goto adopted_one; end if;
recheck:
        if (word.locked /\ word.wake) \/ Broken = "adopter_does_not_look" then
            goto adopted_one;
        elsif Broken = "adopter_looks_before_the_requeue" then
            goto requeue;
        end if;
adopter_kicks:
        kick_one();
adopted_one:
        adopted := adopted \union {adoptee};
        adoptee := Nobody;
        if owner = self then goto unlock; else goto lock; end if;
    end while;
end process;

\* Signals, and timers that end.
process world = "world"
begin
wakes:
    while TRUE do
        either
            with t \in {t \in Threads : Asleep(t) /\ (Surplus \/ Timed)} do
                queue := Without(t);
            end with;
        or
            \* A waiter that is not notified sleeps again.
            with t \in {t \in parked \intersect counted : Surplus} do parked := parked \ {t}; end with;
        end either;
    end while;
end process;

end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-a75b52d65d56fe5d8d7e4f5d08e0c6af
VARIABLES word, queue, parked, adopted, counted, expected, owner, pc

(* define statement *)
MayTake(t) == ~word.locked /\ (~word.handoff \/ t \in counted)
HandedOff == ~word.locked /\ word.handoff

Left(w) ==
    [w EXCEPT !.sleepers = @ - 1,
              !.wake = w.sleepers > 1 \/ (@ /\ Broken = "wake_stays"),
              !.handoff = @ /\ (w.sleepers > 1 \/ Broken = "request_stays")]

Owned(t) ==
    LET taken == [word EXCEPT !.locked = TRUE]
        left == Left([taken EXCEPT !.handoff = @ /\ Broken = "handoff_stays"])
    IN IF t \notin counted THEN taken
       ELSE IF Broken = "owner_without_wake" THEN [left EXCEPT !.wake = FALSE]
       ELSE left

TakenBack(t) ==
    [Owned(t) EXCEPT !.wake = @ \/ Broken # "impatient_wakes_nobody",
                     !.handoff = @ /\ Broken # "impatient_drops_request"]
Asleep(t) == \E i \in DOMAIN queue : queue[i] = t
Without(t) == SelectSeq(queue, LAMBDA u : u # t)

VARIABLES fairly, adoptee

vars == << word, queue, parked, adopted, counted, expected, owner, pc, fairly, 
           adoptee >>

ProcSet == (Threads) \cup {"world"}

Init == (* Global variables *)
        /\ word = [locked |-> FALSE, wake |-> FALSE, handoff |-> FALSE, sleepers |-> 0]
        /\ queue = << >>
        /\ parked = {}
        /\ adopted = {}
        /\ counted = {}
        /\ expected = [t \in Threads |-> Nobody]
        /\ owner = Nobody
        (* Process thread *)
        /\ fairly = [self \in Threads |-> FALSE]
        /\ adoptee = [self \in Threads |-> Nobody]
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "lock"
                                        [] self = "world" -> "wakes"]

lock(self) == /\ pc[self] = "lock"
              /\ \/ /\ IF ~word.locked /\ ~word.wake /\ (~word.handoff \/ Broken = "fast_path_ignores_handoff")
                          THEN /\ word' = [word EXCEPT !.locked = TRUE]
                               /\ owner' = self
                               /\ pc' = [pc EXCEPT ![self] = "unlock"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "spin"]
                               /\ UNCHANGED << word, owner >>
                 \/ /\ Adopts
                    /\ pc' = [pc EXCEPT ![self] = "wait"]
                    /\ UNCHANGED <<word, owner>>
                 \/ /\ Adopts
                    /\ pc' = [pc EXCEPT ![self] = "notify"]
                    /\ UNCHANGED <<word, owner>>
              /\ UNCHANGED << queue, parked, adopted, counted, expected, 
                              fairly, adoptee >>

spin(self) == /\ pc[self] = "spin"
              /\ IF MayTake(self)
                    THEN /\ word' = Owned(self)
                         /\ counted' = counted \ {self}
                         /\ owner' = self
                         /\ pc' = [pc EXCEPT ![self] = "unlock"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "sleep"]
                         /\ UNCHANGED << word, counted, owner >>
              /\ UNCHANGED << queue, parked, adopted, expected, fairly, 
                              adoptee >>

sleep(self) == /\ pc[self] = "sleep"
               /\ IF MayTake(self) /\ Broken \notin {"no_look", "leaver_leaves_it"}
                     THEN /\ pc' = [pc EXCEPT ![self] = "spin"]
                          /\ UNCHANGED << word, counted, expected >>
                     ELSE /\ \/ /\ Timed
                                /\ IF self \in counted
                                      THEN /\ word' = (IF Broken = "leaver_without_wake" THEN [Left(word) EXCEPT !.wake = FALSE] ELSE Left(word))
                                           /\ counted' = counted \ {self}
                                      ELSE /\ TRUE
                                           /\ UNCHANGED << word, counted >>
                                /\ pc' = [pc EXCEPT ![self] = "lock"]
                                /\ UNCHANGED expected
                             \/ /\ Broken # "leaver_leaves_it" \/ ~MayTake(self)
                                /\ IF ~word.locked /\ self \notin counted
                                      THEN /\ \/ /\ pc' = [pc EXCEPT ![self] = "sleep"]
                                                 /\ UNCHANGED expected
                                              \/ /\ HandedOff /\ ~Patient
                                                 /\ expected' = [expected EXCEPT ![self] = word]
                                                 /\ pc' = [pc EXCEPT ![self] = "take_back"]
                                           /\ UNCHANGED << word, counted >>
                                      ELSE /\ \E asks \in {a \in BOOLEAN : a => self \in counted}:
                                                /\ word' = [word EXCEPT !.sleepers = IF self \in counted THEN @ ELSE @ + 1,
                                                                        !.handoff = @ \/ asks,
                                                                        !.wake = @ \/ IF self \in counted THEN Broken # "sleeper_without_wake"
                                                                                      ELSE Broken = "join_without_wake" => word.sleepers = 0]
                                                /\ counted' = (counted \union {self})
                                                /\ expected' = [expected EXCEPT ![self] = word']
                                                /\ pc' = [pc EXCEPT ![self] = "halt"]
               /\ UNCHANGED << queue, parked, adopted, owner, fairly, adoptee >>

halt(self) == /\ pc[self] = "halt"
              /\ IF word # expected[self] /\ Broken # "halt_without_look"
                    THEN /\ expected' = [expected EXCEPT ![self] = Nobody]
                         /\ pc' = [pc EXCEPT ![self] = "sleep"]
                         /\ queue' = queue
                    ELSE /\ queue' = Append(queue, self)
                         /\ pc' = [pc EXCEPT ![self] = "asleep"]
                         /\ UNCHANGED expected
              /\ UNCHANGED << word, parked, adopted, counted, owner, fairly, 
                              adoptee >>

asleep(self) == /\ pc[self] = "asleep"
                /\ ~Asleep(self)
                /\ expected' = [expected EXCEPT ![self] = Nobody]
                /\ pc' = [pc EXCEPT ![self] = "spin"]
                /\ UNCHANGED << word, queue, parked, adopted, counted, owner, 
                                fairly, adoptee >>

take_back(self) == /\ pc[self] = "take_back"
                   /\ IF word = expected[self] \/ Broken = "takes_back_unseen"
                         THEN /\ word' = TakenBack(self)
                              /\ counted' = counted \ {self}
                              /\ owner' = self
                              /\ expected' = [expected EXCEPT ![self] = Nobody]
                              /\ pc' = [pc EXCEPT ![self] = "unlock"]
                         ELSE /\ expected' = [expected EXCEPT ![self] = Nobody]
                              /\ pc' = [pc EXCEPT ![self] = "sleep"]
                              /\ UNCHANGED << word, counted, owner >>
                   /\ UNCHANGED << queue, parked, adopted, fairly, adoptee >>

unlock(self) == /\ pc[self] = "unlock"
                /\ \/ /\ FairUnlocks
                      /\ fairly' = [fairly EXCEPT ![self] = TRUE]
                      /\ pc' = [pc EXCEPT ![self] = "unlock_slow"]
                      /\ UNCHANGED <<word, owner>>
                   \/ /\ Adopts
                      /\ pc' = [pc EXCEPT ![self] = "notify"]
                      /\ UNCHANGED <<word, owner, fairly>>
                   \/ /\ IF Broken = "unlock_stores" /\ ~word.wake /\ ~word.handoff
                            THEN /\ pc' = [pc EXCEPT ![self] = "broken_store"]
                                 /\ UNCHANGED << word, owner >>
                            ELSE /\ IF Broken = "kick_before_release" /\ word.wake
                                       THEN /\ pc' = [pc EXCEPT ![self] = "broken_kick"]
                                            /\ UNCHANGED << word, owner >>
                                       ELSE /\ IF Broken = "unlock_exchanges"
                                                  THEN /\ LET wakes == word.wake IN
                                                            /\ word' = [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.handoff = FALSE]
                                                            /\ owner' = Nobody
                                                            /\ IF wakes
                                                                  THEN /\ pc' = [pc EXCEPT ![self] = "kick"]
                                                                  ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                                                  ELSE /\ IF ~word.wake /\ ~word.handoff
                                                             THEN /\ word' = [word EXCEPT !.locked = FALSE]
                                                                  /\ owner' = Nobody
                                                                  /\ pc' = [pc EXCEPT ![self] = "lock"]
                                                             ELSE /\ pc' = [pc EXCEPT ![self] = "unlock_slow"]
                                                                  /\ UNCHANGED << word, 
                                                                                  owner >>
                      /\ UNCHANGED fairly
                /\ UNCHANGED << queue, parked, adopted, counted, expected, 
                                adoptee >>

unlock_slow(self) == /\ pc[self] = "unlock_slow"
                     /\ owner' = Nobody
                     /\ LET wakes == word.wake IN
                          /\ word' = [word EXCEPT !.locked = FALSE, !.wake = @ /\ Broken = "unlock_leaves_wake",
                                                  !.handoff = (@ /\ Broken # "request_dropped")
                                                              \/ (fairly[self] /\ (word.sleepers > 0 \/ Broken = "fair_to_nobody"))]
                          /\ fairly' = [fairly EXCEPT ![self] = FALSE]
                          /\ IF ~wakes \/ Broken = "kick_forgotten"
                                THEN /\ pc' = [pc EXCEPT ![self] = "lock"]
                                ELSE /\ pc' = [pc EXCEPT ![self] = "kick"]
                     /\ UNCHANGED << queue, parked, adopted, counted, expected, 
                                     adoptee >>

kick(self) == /\ pc[self] = "kick"
              /\ IF queue # << >>
                    THEN /\ queue' = Tail(queue)
                    ELSE /\ TRUE
                         /\ queue' = queue
              /\ pc' = [pc EXCEPT ![self] = "lock"]
              /\ UNCHANGED << word, parked, adopted, counted, expected, owner, 
                              fairly, adoptee >>

broken_store(self) == /\ pc[self] = "broken_store"
                      /\ word' = [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.handoff = FALSE]
                      /\ owner' = Nobody
                      /\ pc' = [pc EXCEPT ![self] = "lock"]
                      /\ UNCHANGED << queue, parked, adopted, counted, 
                                      expected, fairly, adoptee >>

broken_kick(self) == /\ pc[self] = "broken_kick"
                     /\ IF queue # << >>
                           THEN /\ queue' = Tail(queue)
                           ELSE /\ TRUE
                                /\ queue' = queue
                     /\ pc' = [pc EXCEPT ![self] = "broken_release"]
                     /\ UNCHANGED << word, parked, adopted, counted, expected, 
                                     owner, fairly, adoptee >>

broken_release(self) == /\ pc[self] = "broken_release"
                        /\ word' = [word EXCEPT !.locked = FALSE, !.wake = FALSE]
                        /\ owner' = Nobody
                        /\ pc' = [pc EXCEPT ![self] = "lock"]
                        /\ UNCHANGED << queue, parked, adopted, counted, 
                                        expected, fairly, adoptee >>

wait(self) == /\ pc[self] = "wait"
              /\ parked' = (parked \union {self})
              /\ pc' = [pc EXCEPT ![self] = "waiting"]
              /\ UNCHANGED << word, queue, adopted, counted, expected, owner, 
                              fairly, adoptee >>

waiting(self) == /\ pc[self] = "waiting"
                 /\ self \notin parked /\ ~Asleep(self) /\ (self \in counted => self \in adopted)
                 /\ adopted' = adopted \ {self}
                 /\ expected' = [expected EXCEPT ![self] = Nobody]
                 /\ IF self \in counted
                       THEN /\ pc' = [pc EXCEPT ![self] = "spin"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                 /\ UNCHANGED << word, queue, parked, counted, owner, fairly, 
                                 adoptee >>

notify(self) == /\ pc[self] = "notify"
                /\ \/ /\ \E t \in parked \ counted:
                           IF word.locked \/ Broken = "adopts_beside_a_free_lock"
                              THEN /\ word' = [word EXCEPT !.sleepers = @ + 1, !.wake = @ \/ Broken # "adopter_without_wake"]
                                   /\ expected' = [expected EXCEPT ![t] = word']
                                   /\ counted' = (counted \union {t})
                                   /\ adoptee' = [adoptee EXCEPT ![self] = t]
                                   /\ IF Broken = "adopter_looks_before_the_requeue"
                                         THEN /\ pc' = [pc EXCEPT ![self] = "recheck"]
                                         ELSE /\ pc' = [pc EXCEPT ![self] = "requeue"]
                                   /\ UNCHANGED parked
                              ELSE /\ parked' = parked \ {t}
                                   /\ IF owner = self
                                         THEN /\ pc' = [pc EXCEPT ![self] = "unlock"]
                                         ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                                   /\ UNCHANGED << word, counted, expected, 
                                                   adoptee >>
                   \/ /\ parked \subseteq counted
                      /\ IF owner = self
                            THEN /\ pc' = [pc EXCEPT ![self] = "unlock"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                      /\ UNCHANGED <<word, parked, counted, expected, adoptee>>
                /\ UNCHANGED << queue, adopted, owner, fairly >>

requeue(self) == /\ pc[self] = "requeue"
                 /\ IF adoptee[self] \in parked
                       THEN /\ parked' = parked \ {adoptee[self]}
                            /\ queue' = Append(queue, adoptee[self])
                       ELSE /\ TRUE
                            /\ UNCHANGED << queue, parked >>
                 /\ IF Broken = "adopter_looks_before_the_requeue"
                       THEN /\ pc' = [pc EXCEPT ![self] = "adopted_one"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "recheck"]
                 /\ UNCHANGED << word, adopted, counted, expected, owner, 
                                 fairly, adoptee >>

recheck(self) == /\ pc[self] = "recheck"
                 /\ IF (word.locked /\ word.wake) \/ Broken = "adopter_does_not_look"
                       THEN /\ pc' = [pc EXCEPT ![self] = "adopted_one"]
                       ELSE /\ IF Broken = "adopter_looks_before_the_requeue"
                                  THEN /\ pc' = [pc EXCEPT ![self] = "requeue"]
                                  ELSE /\ pc' = [pc EXCEPT ![self] = "adopter_kicks"]
                 /\ UNCHANGED << word, queue, parked, adopted, counted, 
                                 expected, owner, fairly, adoptee >>

adopter_kicks(self) == /\ pc[self] = "adopter_kicks"
                       /\ IF queue # << >>
                             THEN /\ queue' = Tail(queue)
                             ELSE /\ TRUE
                                  /\ queue' = queue
                       /\ pc' = [pc EXCEPT ![self] = "adopted_one"]
                       /\ UNCHANGED << word, parked, adopted, counted, 
                                       expected, owner, fairly, adoptee >>

adopted_one(self) == /\ pc[self] = "adopted_one"
                     /\ adopted' = (adopted \union {adoptee[self]})
                     /\ adoptee' = [adoptee EXCEPT ![self] = Nobody]
                     /\ IF owner = self
                           THEN /\ pc' = [pc EXCEPT ![self] = "unlock"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                     /\ UNCHANGED << word, queue, parked, counted, expected, 
                                     owner, fairly >>

thread(self) == lock(self) \/ spin(self) \/ sleep(self) \/ halt(self)
                   \/ asleep(self) \/ take_back(self) \/ unlock(self)
                   \/ unlock_slow(self) \/ kick(self) \/ broken_store(self)
                   \/ broken_kick(self) \/ broken_release(self)
                   \/ wait(self) \/ waiting(self) \/ notify(self)
                   \/ requeue(self) \/ recheck(self) \/ adopter_kicks(self)
                   \/ adopted_one(self)

wakes == /\ pc["world"] = "wakes"
         /\ \/ /\ \E t \in {t \in Threads : Asleep(t) /\ (Surplus \/ Timed)}:
                    queue' = Without(t)
               /\ UNCHANGED parked
            \/ /\ \E t \in {t \in parked \intersect counted : Surplus}:
                    parked' = parked \ {t}
               /\ queue' = queue
         /\ pc' = [pc EXCEPT !["world"] = "wakes"]
         /\ UNCHANGED << word, adopted, counted, expected, owner, fairly, 
                         adoptee >>

world == wakes

Next == world
           \/ (\E self \in Threads: thread(self))

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Threads : WF_vars(thread(self))

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-3d7041bb938f7ab0de59dab0f81103f8
-------------------------------------------------------------------------------
(* Safety *)

TypeOK ==
    /\ word \in [locked : BOOLEAN, wake : BOOLEAN, handoff : BOOLEAN, sleepers : 0..Cardinality(Threads)]
    /\ \A i, j \in DOMAIN queue : queue[i] = queue[j] => i = j
    /\ parked \intersect {t \in Threads : Asleep(t)} = {}

Adopting(t) == pc[t] \in {"requeue", "recheck", "adopter_kicks", "adopted_one"}

Owns(t) ==
    \/ pc[t] \in {"unlock", "unlock_slow", "broken_store", "broken_kick", "broken_release"}
    \/ (Adopting(t) \/ pc[t] = "notify") /\ owner = t

I1_OneOwner ==
    /\ word.locked <=> owner # Nobody
    /\ \A t \in Threads : Owns(t) <=> owner = t

\* Is awake, and sets WAKE as the owner, before it sleeps, or as it leaves.
SetsWake(t) == t \in counted \ parked /\ ~Asleep(t) /\ (pc[t] = "halt" => expected[t] # word)

I2_Counted ==
    /\ word.sleepers = Cardinality(counted)
    /\ word.wake => counted # {}
    /\ counted # {} /\ ~word.wake =>
        \E t \in Threads : SetsWake(t) \/ pc[t] \in {"kick", "requeue", "recheck", "adopter_kicks"}

I3_FreeIsZero == word.wake => word.locked

I3_SleepsOnWake == \A i \in DOMAIN queue : expected[queue[i]].wake /\ expected[queue[i]].locked

I3_HandedOffToSome == word.handoff => counted # {}

\* A lock that is handed off goes to a counted thread, or is taken back by a newcomer, which leaves the request.
I3_CountedIsNext ==
    [][HandedOff /\ owner' # owner =>
        \/ owner' \in counted /\ ~word'.handoff
        \/ owner' \notin counted /\ word'.handoff /\ word'.wake]_vars

\* A handoff ends with the counted thread that picks the lock up, or with the last that leaves.
I3_RequestStays ==
    [][word.handoff /\ ~word'.handoff => (HandedOff /\ owner' \in counted) \/ counted' = {}]_vars

\* What is left behind when nobody uses the lock.
IdleIsClean ==
    (\A t \in Threads : pc[t] = "lock" \/ t \in parked \ counted) =>
        ~(word.locked \/ word.wake \/ word.handoff) /\ word.sleepers = 0 /\ counted = {}

\* Who sleeps can count on somebody who is awake, and at work on the lock.
SomebodyIsAwake ==
    (\E t \in Threads : Asleep(t)) => \E t \in Threads : pc[t] # "lock" /\ ~Asleep(t) /\ t \notin parked

-------------------------------------------------------------------------------
(* Progress *)

\* Who would sleep again and again asks: its time is over once.
Asks == SF_vars(sleep(Me) /\ Me \in counted /\ word'.handoff)

\* A thread that is awake while the lock is handed off to the counted ones is not too late each time.
IsInTime == SF_vars((spin(Me) \/ sleep(Me)) /\ HandedOff) /\ SF_vars(spin(Me) /\ owner' = Me)

FairSpec == Spec /\ Asks /\ IsInTime

\* Whoever wants the lock gets it, or has given up.
Progress == pc[Me] = "spin" ~> Owns(Me) \/ (Timed /\ pc[Me] = "lock")

Symmetry == Permutations(Threads)

===============================================================================
