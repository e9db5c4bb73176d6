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
    Sequence,     \* an unlock is a restartable sequence of a look and a store; else one exchange
    Timed,        \* waiters may give up
    Surplus,      \* a sleep may end for no reason
    FairUnlocks,  \* unlock_fair is used too
    Broken        \* "nothing", or what is wrong

ASSUME {Sequence, Timed, Surplus, FairUnlocks} \subseteq BOOLEAN /\ Me \in Threads

(* --algorithm overlock
variables
    \* Byte 0 is locked, wake, slow, calm and spinner.
    word = [locked |-> FALSE, wake |-> FALSE, slow |-> FALSE, calm |-> FALSE, spinner |-> FALSE, asked |-> FALSE,
            given |-> FALSE, crowd |-> FALSE, sleepers |-> 0],
    \* The operating system's queue of those that sleep as waiters, and those that sleep apart.
    queue = << >>, apart = {},
    \* Threads within the sequence of their unlock, that nobody has restarted.
    within = {},
    \* What each thread knows of itself. Those that are announced have set SPINNER, which may have been erased since.
    counted = {}, heir = Nobody, announced = {},
    \* What each thread is about to sleep on, or sleeps on.
    expected = [t \in Threads |-> Nobody],
    \* For the properties: who has the lock; whether the heir asked when all restarts that were due had been made.
    owner = Nobody, firm = FALSE;

define
    MayTake(t) ==
        \/ ~word.locked
        \/ word.given /\ ~word.asked /\ t \in counted
        \/ word.given /\ word.asked /\ t = heir
    \* Waiter::stop_spinning.
    Stopped(w, t) == [w EXCEPT !.spinner = @ /\ t \notin announced]
    \* Waiter::leave, of one that is counted.
    Left(w, t) ==
        [Stopped(w, t) EXCEPT !.sleepers = @ - 1, !.asked = @ /\ (t # heir \/ Broken = "asked_stays"), !.wake = w.sleepers > 1,
                  !.slow = @ \/ (w.sleepers > 1 /\ Broken # "leave_without_slow"), !.calm = @ \/ w.sleepers = 1]
    HasToDo == word.wake \/ word.slow \/ word.calm \/ word.spinner
    \* The word where a waiter may become the spinner.
    CanMakeWay == word.locked /\ ~word.given /\ word.slow /\ ~word.calm
    Spins(t) == t \in announced /\ word.spinner
    Asleep(t) == t \in apart \/ \E i \in DOMAIN queue : queue[i] = t
    Without(t) == SelectSeq(queue, LAMBDA u : u # t)
end define;

\* Waiter::attempt, of what may be taken. A word with CROWD is followed by `let_in`.
macro attempt() begin
    word := LET taken == [word EXCEPT !.locked = TRUE, !.given = FALSE, !.crowd = FALSE]
            IN IF Broken = "owner_keeps_spinner" /\ self \notin counted THEN taken
               ELSE IF self \notin counted THEN Stopped(taken, self)
               ELSE IF Broken = "owner_without_wake" THEN [Left(taken, self) EXCEPT !.wake = FALSE]
               ELSE Left(taken, self);
    counted := counted \ {self};
    announced := announced \ {self};
    if heir = self then heir := Nobody; firm := FALSE; end if;
    owner := self;
end macro;

fair process thread \in Threads
variables crowded = FALSE, leaving = FALSE;
begin
lock:
    while TRUE do
        if ~word.locked then
            word.locked := TRUE;
            owner := self;
            goto unlock;
        end if;
spin:
        if MayTake(self) then
            crowded := word.crowd;
            attempt();
            goto let_in;
        else
            either
                goto sleep;
            or
                \* Its spin goes on, as the spinner, or as the heir that is awake.
                await CanMakeWay /\ (~word.asked \/ Broken = "spinner_beside_request") /\ ~word.spinner;
                word.spinner := TRUE;
                announced := announced \union {self};
                goto spin;
            or
                await word.locked /\ ~word.given /\ ~word.asked /\ (word.slow \/ Broken = "request_without_slow");
                await self \in counted \/ Broken = "newcomer_requests";
                heir := self;
                firm := word.slow /\ \A t \in Threads : pc[t] # "restart";
                word := [word EXCEPT !.wake = TRUE, !.slow = TRUE, !.asked = TRUE,
                                     !.spinner = @ /\ Broken = "request_keeps_spinner"];
                announced := announced \ {self};
                goto spin;
            or
                await CanMakeWay /\ ~word.asked /\ ~word.spinner /\ self \notin counted;
                goto make_way;
            end either;
        end if;
make_way:
        if queue # << >> then queue := Tail(queue); end if;
sleep:
        if MayTake(self) /\ Broken # "no_look" then
            goto spin;
        else
            either
                await Timed;
                goto give_up;
            or
                if self \notin counted /\ word.given /\ ~word.asked then
                    word := [IF Broken = "apart_keeps_spinner" THEN word ELSE Stopped(word, self) EXCEPT !.crowd = TRUE];
                    announced := announced \ {self};
                    expected[self] := word;
                    goto halt_apart;
                elsif self \notin counted then
                    counted := counted \union {self};
                    \* Whether it has seen the spinner become it.
                    with knows \in BOOLEAN,
                         joined = [word EXCEPT !.sleepers = @ + 1, !.slow = @ \/ Broken # "slow_not_set",
                                               !.spinner = @ /\ knows /\ (self \notin announced \/ Broken = "joiner_keeps_spinner"),
                                               !.calm = @ /\ Broken = "calm_stays",
                                               !.wake = @ \/ (Broken = "join_without_wake" => word.sleepers = 0)],
                         begins = ~word.slow /\ Sequence /\ Broken # "no_restart" do
                        word := joined;
                        announced := announced \ {self};
                        expected[self] := joined;
                        if begins then goto restart; else goto halt; end if;
                    end with;
                else
                    with asks \in {FALSE, ~word.asked /\ ~word.given}, knows \in BOOLEAN, begins = ~word.slow /\ Sequence do
                        word := [word EXCEPT !.wake = @ \/ Broken # "sleeper_without_wake", !.slow = TRUE, !.asked = @ \/ asks,
                                             !.spinner = @ /\ IF asks THEN Broken = "request_keeps_spinner"
                                                             ELSE knows /\ (self \notin announced \/ Broken = "sleeper_keeps_spinner")];
                        announced := announced \ {self};
                        if asks then
                            heir := self;
                            firm := ~begins /\ \A t \in Threads : pc[t] # "restart";
                        end if;
                        expected[self] := word;
                        if begins then goto restart; else goto halt; end if;
                    end with;
                end if;
            end either;
        end if;
restart:
        within := {};
        if leaving then
            leaving := FALSE;
            goto give_up;
        end if;
halt:
        if word # expected[self] then
            expected[self] := Nobody;
            goto sleep;
        elsif heir = self /\ Broken # "heir_sleeps_as_any" then
            apart := apart \union {self};
        else
            queue := Append(queue, self);
        end if;
asleep:
        await ~Asleep(self);
        expected[self] := Nobody;
        goto spin;
halt_apart:
        if word = expected[self] then apart := apart \union {self}; end if;
asleep_apart:
        await ~Asleep(self);
        expected[self] := Nobody;
        goto sleep;
give_up:
        if (self \in counted \/ Spins(self)) /\ MayTake(self)
           /\ Broken # (IF self \in counted THEN "leaver_leaves_it" ELSE "spinner_leaves_it") then
            crowded := word.crowd;
            attempt();
            goto let_in;
        elsif self \in counted /\ ~word.slow /\ Broken # "leaver_keeps_silent" then
            if Sequence then
                leaving := TRUE;
                word := [word EXCEPT !.wake = TRUE, !.slow = TRUE];
                goto restart;
            else
                word := [word EXCEPT !.wake = TRUE, !.slow = TRUE];
                goto give_up;
            end if;
        else
            if self \in counted then
                word := IF Broken = "leaver_without_wake" THEN [Left(word, self) EXCEPT !.wake = FALSE] ELSE Left(word, self);
                counted := counted \ {self};
                if heir = self then heir := Nobody; firm := FALSE; end if;
            elsif Broken # "leaver_keeps_spinner" then
                word := Stopped(word, self);
            end if;
            announced := announced \ {self};
            goto lock;
        end if;
let_in:
        if crowded /\ Broken # "crowd_not_let_in" then apart := {}; end if;
        crowded := FALSE;
unlock:
        either
            await FairUnlocks /\ word.wake /\ ~word.asked;
            word := [word EXCEPT !.wake = FALSE, !.given = TRUE];
            owner := Nobody;
            goto kick_one;
        or
            if HasToDo then
                goto unlock_slow;
            elsif Sequence then
                within := within \union {self};
            else
                word.locked := FALSE;
                owner := Nobody;
                goto lock;
            end if;
        end either;
release:
        if self \in within then
            within := within \ {self};
            \* What others have set in byte 0 since the look goes too.
            word := [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.slow = FALSE, !.calm = FALSE,
                                 !.spinner = FALSE];
            owner := Nobody;
            goto lock;
        end if;
unlock_slow:
        owner := Nobody;
        \* Byte 0 alone tells whether there is anything to wake, or to hand off.
        if word.wake /\ ~word.spinner /\ word.asked then
            word := [word EXCEPT !.given = TRUE, !.asked = Broken # "given_to_any"];
            goto kick_apart;
        elsif word.wake /\ ~word.spinner then
            word := [word EXCEPT !.locked = FALSE, !.wake = FALSE];
        else
            with ends \in {FALSE, word.calm} do
                word := [word EXCEPT !.locked = FALSE, !.slow = @ /\ ~ends, !.calm = @ /\ ~ends,
                                     !.spinner = @ /\ ~ends];
            end with;
            goto lock;
        end if;
kick_one:
        if queue # << >> /\ Broken # "kick_forgotten" then queue := Tail(queue); end if;
        goto lock;
kick_apart:
        apart := {};
    end while;
end process;

\* Signals, and timers that end.
process world = "world"
begin
wakes:
    while TRUE do
        await Surplus \/ Timed;
        with t \in {t \in Threads : Asleep(t)} do
            queue := Without(t);
            apart := apart \ {t};
        end with;
    end while;
end process;

end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-120b7d4eee399bc10fd5d7e58162250a
VARIABLES word, queue, apart, within, counted, heir, announced, expected, 
          owner, firm, pc

(* define statement *)
MayTake(t) ==
    \/ ~word.locked
    \/ word.given /\ ~word.asked /\ t \in counted
    \/ word.given /\ word.asked /\ t = heir

Stopped(w, t) == [w EXCEPT !.spinner = @ /\ t \notin announced]

Left(w, t) ==
    [Stopped(w, t) EXCEPT !.sleepers = @ - 1, !.asked = @ /\ (t # heir \/ Broken = "asked_stays"), !.wake = w.sleepers > 1,
              !.slow = @ \/ (w.sleepers > 1 /\ Broken # "leave_without_slow"), !.calm = @ \/ w.sleepers = 1]
HasToDo == word.wake \/ word.slow \/ word.calm \/ word.spinner

CanMakeWay == word.locked /\ ~word.given /\ word.slow /\ ~word.calm
Spins(t) == t \in announced /\ word.spinner
Asleep(t) == t \in apart \/ \E i \in DOMAIN queue : queue[i] = t
Without(t) == SelectSeq(queue, LAMBDA u : u # t)

VARIABLES crowded, leaving

vars == << word, queue, apart, within, counted, heir, announced, expected, 
           owner, firm, pc, crowded, leaving >>

ProcSet == (Threads) \cup {"world"}

Init == (* Global variables *)
        /\ word = [locked |-> FALSE, wake |-> FALSE, slow |-> FALSE, calm |-> FALSE, spinner |-> FALSE, asked |-> FALSE,
                   given |-> FALSE, crowd |-> FALSE, sleepers |-> 0]
        /\ queue = << >>
        /\ apart = {}
        /\ within = {}
        /\ counted = {}
        /\ heir = Nobody
        /\ announced = {}
        /\ expected = [t \in Threads |-> Nobody]
        /\ owner = Nobody
        /\ firm = FALSE
        (* Process thread *)
        /\ crowded = [self \in Threads |-> FALSE]
        /\ leaving = [self \in Threads |-> FALSE]
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "lock"
                                        [] self = "world" -> "wakes"]

lock(self) == /\ pc[self] = "lock"
              /\ IF ~word.locked
                    THEN /\ word' = [word EXCEPT !.locked = TRUE]
                         /\ owner' = self
                         /\ pc' = [pc EXCEPT ![self] = "unlock"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "spin"]
                         /\ UNCHANGED << word, owner >>
              /\ UNCHANGED << queue, apart, within, counted, heir, announced, 
                              expected, firm, crowded, leaving >>

spin(self) == /\ pc[self] = "spin"
              /\ IF MayTake(self)
                    THEN /\ crowded' = [crowded EXCEPT ![self] = word.crowd]
                         /\ word' = (LET taken == [word EXCEPT !.locked = TRUE, !.given = FALSE, !.crowd = FALSE]
                                     IN IF Broken = "owner_keeps_spinner" /\ self \notin counted THEN taken
                                        ELSE IF self \notin counted THEN Stopped(taken, self)
                                        ELSE IF Broken = "owner_without_wake" THEN [Left(taken, self) EXCEPT !.wake = FALSE]
                                        ELSE Left(taken, self))
                         /\ counted' = counted \ {self}
                         /\ announced' = announced \ {self}
                         /\ IF heir = self
                               THEN /\ heir' = Nobody
                                    /\ firm' = FALSE
                               ELSE /\ TRUE
                                    /\ UNCHANGED << heir, firm >>
                         /\ owner' = self
                         /\ pc' = [pc EXCEPT ![self] = "let_in"]
                    ELSE /\ \/ /\ pc' = [pc EXCEPT ![self] = "sleep"]
                               /\ UNCHANGED <<word, heir, announced, firm>>
                            \/ /\ CanMakeWay /\ (~word.asked \/ Broken = "spinner_beside_request") /\ ~word.spinner
                               /\ word' = [word EXCEPT !.spinner = TRUE]
                               /\ announced' = (announced \union {self})
                               /\ pc' = [pc EXCEPT ![self] = "spin"]
                               /\ UNCHANGED <<heir, firm>>
                            \/ /\ word.locked /\ ~word.given /\ ~word.asked /\ (word.slow \/ Broken = "request_without_slow")
                               /\ self \in counted \/ Broken = "newcomer_requests"
                               /\ heir' = self
                               /\ firm' = (word.slow /\ \A t \in Threads : pc[t] # "restart")
                               /\ word' = [word EXCEPT !.wake = TRUE, !.slow = TRUE, !.asked = TRUE,
                                                       !.spinner = @ /\ Broken = "request_keeps_spinner"]
                               /\ announced' = announced \ {self}
                               /\ pc' = [pc EXCEPT ![self] = "spin"]
                            \/ /\ CanMakeWay /\ ~word.asked /\ ~word.spinner /\ self \notin counted
                               /\ pc' = [pc EXCEPT ![self] = "make_way"]
                               /\ UNCHANGED <<word, heir, announced, firm>>
                         /\ UNCHANGED << counted, owner, crowded >>
              /\ UNCHANGED << queue, apart, within, expected, leaving >>

make_way(self) == /\ pc[self] = "make_way"
                  /\ IF queue # << >>
                        THEN /\ queue' = Tail(queue)
                        ELSE /\ TRUE
                             /\ queue' = queue
                  /\ pc' = [pc EXCEPT ![self] = "sleep"]
                  /\ UNCHANGED << word, apart, within, counted, heir, 
                                  announced, expected, owner, firm, crowded, 
                                  leaving >>

sleep(self) == /\ pc[self] = "sleep"
               /\ IF MayTake(self) /\ Broken # "no_look"
                     THEN /\ pc' = [pc EXCEPT ![self] = "spin"]
                          /\ UNCHANGED << word, counted, heir, announced, 
                                          expected, firm >>
                     ELSE /\ \/ /\ Timed
                                /\ pc' = [pc EXCEPT ![self] = "give_up"]
                                /\ UNCHANGED <<word, counted, heir, announced, expected, firm>>
                             \/ /\ IF self \notin counted /\ word.given /\ ~word.asked
                                      THEN /\ word' = [IF Broken = "apart_keeps_spinner" THEN word ELSE Stopped(word, self) EXCEPT !.crowd = TRUE]
                                           /\ announced' = announced \ {self}
                                           /\ expected' = [expected EXCEPT ![self] = word']
                                           /\ pc' = [pc EXCEPT ![self] = "halt_apart"]
                                           /\ UNCHANGED << counted, heir, firm >>
                                      ELSE /\ IF self \notin counted
                                                 THEN /\ counted' = (counted \union {self})
                                                      /\ \E knows \in BOOLEAN:
                                                           LET joined == [word EXCEPT !.sleepers = @ + 1, !.slow = @ \/ Broken # "slow_not_set",
                                                                                      !.spinner = @ /\ knows /\ (self \notin announced \/ Broken = "joiner_keeps_spinner"),
                                                                                      !.calm = @ /\ Broken = "calm_stays",
                                                                                      !.wake = @ \/ (Broken = "join_without_wake" => word.sleepers = 0)] IN
                                                             LET begins == ~word.slow /\ Sequence /\ Broken # "no_restart" IN
                                                               /\ word' = joined
                                                               /\ announced' = announced \ {self}
                                                               /\ expected' = [expected EXCEPT ![self] = joined]
                                                               /\ IF begins
                                                                     THEN /\ pc' = [pc EXCEPT ![self] = "restart"]
                                                                     ELSE /\ pc' = [pc EXCEPT ![self] = "halt"]
                                                      /\ UNCHANGED << heir, 
                                                                      firm >>
                                                 ELSE /\ \E asks \in {FALSE, ~word.asked /\ ~word.given}:
                                                           \E knows \in BOOLEAN:
                                                             LET begins == ~word.slow /\ Sequence IN
                                                               /\ word' = [word EXCEPT !.wake = @ \/ Broken # "sleeper_without_wake", !.slow = TRUE, !.asked = @ \/ asks,
                                                                                       !.spinner = @ /\ IF asks THEN Broken = "request_keeps_spinner"
                                                                                                       ELSE knows /\ (self \notin announced \/ Broken = "sleeper_keeps_spinner")]
                                                               /\ announced' = announced \ {self}
                                                               /\ IF asks
                                                                     THEN /\ heir' = self
                                                                          /\ firm' = (~begins /\ \A t \in Threads : pc[t] # "restart")
                                                                     ELSE /\ TRUE
                                                                          /\ UNCHANGED << heir, 
                                                                                          firm >>
                                                               /\ expected' = [expected EXCEPT ![self] = word']
                                                               /\ IF begins
                                                                     THEN /\ pc' = [pc EXCEPT ![self] = "restart"]
                                                                     ELSE /\ pc' = [pc EXCEPT ![self] = "halt"]
                                                      /\ UNCHANGED counted
               /\ UNCHANGED << queue, apart, within, owner, crowded, leaving >>

restart(self) == /\ pc[self] = "restart"
                 /\ within' = {}
                 /\ IF leaving[self]
                       THEN /\ leaving' = [leaving EXCEPT ![self] = FALSE]
                            /\ pc' = [pc EXCEPT ![self] = "give_up"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "halt"]
                            /\ UNCHANGED leaving
                 /\ UNCHANGED << word, queue, apart, counted, heir, announced, 
                                 expected, owner, firm, crowded >>

halt(self) == /\ pc[self] = "halt"
              /\ IF word # expected[self]
                    THEN /\ expected' = [expected EXCEPT ![self] = Nobody]
                         /\ pc' = [pc EXCEPT ![self] = "sleep"]
                         /\ UNCHANGED << queue, apart >>
                    ELSE /\ IF heir = self /\ Broken # "heir_sleeps_as_any"
                               THEN /\ apart' = (apart \union {self})
                                    /\ queue' = queue
                               ELSE /\ queue' = Append(queue, self)
                                    /\ apart' = apart
                         /\ pc' = [pc EXCEPT ![self] = "asleep"]
                         /\ UNCHANGED expected
              /\ UNCHANGED << word, within, counted, heir, announced, owner, 
                              firm, crowded, leaving >>

asleep(self) == /\ pc[self] = "asleep"
                /\ ~Asleep(self)
                /\ expected' = [expected EXCEPT ![self] = Nobody]
                /\ pc' = [pc EXCEPT ![self] = "spin"]
                /\ UNCHANGED << word, queue, apart, within, counted, heir, 
                                announced, owner, firm, crowded, leaving >>

halt_apart(self) == /\ pc[self] = "halt_apart"
                    /\ IF word = expected[self]
                          THEN /\ apart' = (apart \union {self})
                          ELSE /\ TRUE
                               /\ apart' = apart
                    /\ pc' = [pc EXCEPT ![self] = "asleep_apart"]
                    /\ UNCHANGED << word, queue, within, counted, heir, 
                                    announced, expected, owner, firm, crowded, 
                                    leaving >>

asleep_apart(self) == /\ pc[self] = "asleep_apart"
                      /\ ~Asleep(self)
                      /\ expected' = [expected EXCEPT ![self] = Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "sleep"]
                      /\ UNCHANGED << word, queue, apart, within, counted, 
                                      heir, announced, owner, firm, crowded, 
                                      leaving >>

give_up(self) == /\ pc[self] = "give_up"
                 /\ IF (self \in counted \/ Spins(self)) /\ MayTake(self)
                       /\ Broken # (IF self \in counted THEN "leaver_leaves_it" ELSE "spinner_leaves_it")
                       THEN /\ crowded' = [crowded EXCEPT ![self] = word.crowd]
                            /\ word' = (LET taken == [word EXCEPT !.locked = TRUE, !.given = FALSE, !.crowd = FALSE]
                                        IN IF Broken = "owner_keeps_spinner" /\ self \notin counted THEN taken
                                           ELSE IF self \notin counted THEN Stopped(taken, self)
                                           ELSE IF Broken = "owner_without_wake" THEN [Left(taken, self) EXCEPT !.wake = FALSE]
                                           ELSE Left(taken, self))
                            /\ counted' = counted \ {self}
                            /\ announced' = announced \ {self}
                            /\ IF heir = self
                                  THEN /\ heir' = Nobody
                                       /\ firm' = FALSE
                                  ELSE /\ TRUE
                                       /\ UNCHANGED << heir, firm >>
                            /\ owner' = self
                            /\ pc' = [pc EXCEPT ![self] = "let_in"]
                            /\ UNCHANGED leaving
                       ELSE /\ IF self \in counted /\ ~word.slow /\ Broken # "leaver_keeps_silent"
                                  THEN /\ IF Sequence
                                             THEN /\ leaving' = [leaving EXCEPT ![self] = TRUE]
                                                  /\ word' = [word EXCEPT !.wake = TRUE, !.slow = TRUE]
                                                  /\ pc' = [pc EXCEPT ![self] = "restart"]
                                             ELSE /\ word' = [word EXCEPT !.wake = TRUE, !.slow = TRUE]
                                                  /\ pc' = [pc EXCEPT ![self] = "give_up"]
                                                  /\ UNCHANGED leaving
                                       /\ UNCHANGED << counted, heir, 
                                                       announced, firm >>
                                  ELSE /\ IF self \in counted
                                             THEN /\ word' = (IF Broken = "leaver_without_wake" THEN [Left(word, self) EXCEPT !.wake = FALSE] ELSE Left(word, self))
                                                  /\ counted' = counted \ {self}
                                                  /\ IF heir = self
                                                        THEN /\ heir' = Nobody
                                                             /\ firm' = FALSE
                                                        ELSE /\ TRUE
                                                             /\ UNCHANGED << heir, 
                                                                             firm >>
                                             ELSE /\ IF Broken # "leaver_keeps_spinner"
                                                        THEN /\ word' = Stopped(word, self)
                                                        ELSE /\ TRUE
                                                             /\ word' = word
                                                  /\ UNCHANGED << counted, 
                                                                  heir, firm >>
                                       /\ announced' = announced \ {self}
                                       /\ pc' = [pc EXCEPT ![self] = "lock"]
                                       /\ UNCHANGED leaving
                            /\ UNCHANGED << owner, crowded >>
                 /\ UNCHANGED << queue, apart, within, expected >>

let_in(self) == /\ pc[self] = "let_in"
                /\ IF crowded[self] /\ Broken # "crowd_not_let_in"
                      THEN /\ apart' = {}
                      ELSE /\ TRUE
                           /\ apart' = apart
                /\ crowded' = [crowded EXCEPT ![self] = FALSE]
                /\ pc' = [pc EXCEPT ![self] = "unlock"]
                /\ UNCHANGED << word, queue, within, counted, heir, announced, 
                                expected, owner, firm, leaving >>

unlock(self) == /\ pc[self] = "unlock"
                /\ \/ /\ FairUnlocks /\ word.wake /\ ~word.asked
                      /\ word' = [word EXCEPT !.wake = FALSE, !.given = TRUE]
                      /\ owner' = Nobody
                      /\ pc' = [pc EXCEPT ![self] = "kick_one"]
                      /\ UNCHANGED within
                   \/ /\ IF HasToDo
                            THEN /\ pc' = [pc EXCEPT ![self] = "unlock_slow"]
                                 /\ UNCHANGED << word, within, owner >>
                            ELSE /\ IF Sequence
                                       THEN /\ within' = (within \union {self})
                                            /\ pc' = [pc EXCEPT ![self] = "release"]
                                            /\ UNCHANGED << word, owner >>
                                       ELSE /\ word' = [word EXCEPT !.locked = FALSE]
                                            /\ owner' = Nobody
                                            /\ pc' = [pc EXCEPT ![self] = "lock"]
                                            /\ UNCHANGED within
                /\ UNCHANGED << queue, apart, counted, heir, announced, 
                                expected, firm, crowded, leaving >>

release(self) == /\ pc[self] = "release"
                 /\ IF self \in within
                       THEN /\ within' = within \ {self}
                            /\ word' = [word EXCEPT !.locked = FALSE, !.wake = FALSE, !.slow = FALSE, !.calm = FALSE,
                                                    !.spinner = FALSE]
                            /\ owner' = Nobody
                            /\ pc' = [pc EXCEPT ![self] = "lock"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "unlock_slow"]
                            /\ UNCHANGED << word, within, owner >>
                 /\ UNCHANGED << queue, apart, counted, heir, announced, 
                                 expected, firm, crowded, leaving >>

unlock_slow(self) == /\ pc[self] = "unlock_slow"
                     /\ owner' = Nobody
                     /\ IF word.wake /\ ~word.spinner /\ word.asked
                           THEN /\ word' = [word EXCEPT !.given = TRUE, !.asked = Broken # "given_to_any"]
                                /\ pc' = [pc EXCEPT ![self] = "kick_apart"]
                           ELSE /\ IF word.wake /\ ~word.spinner
                                      THEN /\ word' = [word EXCEPT !.locked = FALSE, !.wake = FALSE]
                                           /\ pc' = [pc EXCEPT ![self] = "kick_one"]
                                      ELSE /\ \E ends \in {FALSE, word.calm}:
                                                word' = [word EXCEPT !.locked = FALSE, !.slow = @ /\ ~ends, !.calm = @ /\ ~ends,
                                                                     !.spinner = @ /\ ~ends]
                                           /\ pc' = [pc EXCEPT ![self] = "lock"]
                     /\ UNCHANGED << queue, apart, within, counted, heir, 
                                     announced, expected, firm, crowded, 
                                     leaving >>

kick_one(self) == /\ pc[self] = "kick_one"
                  /\ IF queue # << >> /\ Broken # "kick_forgotten"
                        THEN /\ queue' = Tail(queue)
                        ELSE /\ TRUE
                             /\ queue' = queue
                  /\ pc' = [pc EXCEPT ![self] = "lock"]
                  /\ UNCHANGED << word, apart, within, counted, heir, 
                                  announced, expected, owner, firm, crowded, 
                                  leaving >>

kick_apart(self) == /\ pc[self] = "kick_apart"
                    /\ apart' = {}
                    /\ pc' = [pc EXCEPT ![self] = "lock"]
                    /\ UNCHANGED << word, queue, within, counted, heir, 
                                    announced, expected, owner, firm, crowded, 
                                    leaving >>

thread(self) == lock(self) \/ spin(self) \/ make_way(self) \/ sleep(self)
                   \/ restart(self) \/ halt(self) \/ asleep(self)
                   \/ halt_apart(self) \/ asleep_apart(self)
                   \/ give_up(self) \/ let_in(self) \/ unlock(self)
                   \/ release(self) \/ unlock_slow(self) \/ kick_one(self)
                   \/ kick_apart(self)

wakes == /\ pc["world"] = "wakes"
         /\ Surplus \/ Timed
         /\ \E t \in {t \in Threads : Asleep(t)}:
              /\ queue' = Without(t)
              /\ apart' = apart \ {t}
         /\ pc' = [pc EXCEPT !["world"] = "wakes"]
         /\ UNCHANGED << word, within, counted, heir, announced, expected, 
                         owner, firm, crowded, leaving >>

world == wakes

Next == world
           \/ (\E self \in Threads: thread(self))

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Threads : WF_vars(thread(self))

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-043661e0d75cab743e300d31cce6669e
-------------------------------------------------------------------------------
(* Safety *)

TypeOK ==
    /\ word \in [locked : BOOLEAN, wake : BOOLEAN, slow : BOOLEAN, calm : BOOLEAN, spinner : BOOLEAN, asked : BOOLEAN,
                 given : BOOLEAN, crowd : BOOLEAN, sleepers : 0..Cardinality(Threads)]
    /\ \A i, j \in DOMAIN queue : queue[i] = queue[j] => i = j
    /\ heir \in counted \union {Nobody}

Owns(t) == pc[t] \in {"let_in", "unlock", "release", "unlock_slow"}

Exclusion == \A t, u \in Threads : Owns(t) /\ Owns(u) => t = u

I1_OwnedOrGiven ==
    /\ word.locked /\ ~word.given <=> owner # Nobody
    /\ \A t \in Threads : Owns(t) <=> owner = t
    /\ word.given => word.locked /\ counted # {}

\* Is awake, and sets WAKE as the owner, before it sleeps, or as it leaves.
SetsWake(t) == t \in counted /\ ~Asleep(t) /\ (pc[t] \in {"restart", "halt"} => expected[t] # word)

I2_Counted ==
    /\ word.sleepers = Cardinality(counted)
    /\ word.calm => counted = {}
    /\ word.wake \/ word.spinner => word.slow
    /\ counted # {} /\ ~word.wake => \E t \in Threads : SetsWake(t) \/ pc[t] = "kick_one"

\* A release that would take slow with it is about to be restarted, by a thread that is awake.
\* Not asked where it is broken on purpose: what sleeps for ever then has to be found itself.
I2_Restart ==
    Broken \notin {"no_restart", "leaver_keeps_silent", "request_without_slow"} =>
        (word.slow /\ within # {} => \E t \in Threads : pc[t] = "restart")

I2_SleepsOnWake == \A i \in DOMAIN queue : expected[queue[i]].wake

I3_OneHeir == word.asked <=> heir # Nobody

\* Once a waiter has asked, the lock is nobody's but its present owner's and then its own. Not where the thread that has set
\* SLOW is still about to restart releases: then one of those may store, and take wake and slow with it.
I3_HeirIsNext == [][firm /\ owner' # owner /\ owner' # Nobody => owner' = heir]_vars

I4_NotAsleepOnGiven ==
    \A t \in counted : Asleep(t) => ~(expected[t].given /\ ~expected[t].asked)

\* While unlocks wake nobody, a thread polls the lock that has set SPINNER, and takes it or clears the bit as it goes.
I6_SpinnerIsAwake ==
    word.spinner => \E t \in announced : ~Asleep(t) /\ pc[t] \in {"spin", "make_way", "sleep", "give_up"}

\* It leaves the lock only where somebody has it, whose unlock then wakes a sleeper.
I6_FreeIsWatched == ~word.locked /\ word.wake => word.spinner

\* Unlocks look at byte 0 alone while SPINNER is set.
I6_RequestIsSeen == word.asked => ~word.spinner

\* What is left behind when nobody uses the lock.
IdleIsClean ==
    (\A t \in Threads : pc[t] = "lock") =>
        ~(word.locked \/ word.wake \/ word.spinner \/ word.asked \/ word.given \/ word.crowd) /\ word.sleepers = 0 /\ counted = {}

\* Who sleeps can count on somebody who is awake, and at work on the lock.
SomebodyIsAwake ==
    (\E t \in Threads : Asleep(t)) => \E t \in Threads : pc[t] # "lock" /\ ~Asleep(t)

-------------------------------------------------------------------------------
(* Progress *)

\* Who would sleep or spin again and again asks: its time is over once.
Asks == SF_vars((spin(Me) \/ sleep(Me)) /\ heir' = Me)

\* Others do not ask for ever: each has to wait for a time before it does.
RivalsEnd == <>[](heir \in {Nobody, Me})

\* Who is about to sleep does not find the lock free each time that it looks.
SpinsEnd == \A t \in Threads : SF_vars(sleep(t) /\ pc'[t] \in {"restart", "halt"})

\* Who spins in vain again and again reaches the limit of a spin, and is not chosen to make way each time.
VainSpinsEnd == SF_vars(spin(Me) /\ pc'[Me] = "sleep")

\* Who makes way is chosen at random: where others could become the spinner again and again, one makes way instead.
WayIsMade == SF_vars(\E t \in Threads \ {Me} : spin(t) /\ pc'[t] = "make_way")

\* A release does not come between its look and its store each time that somebody sets SLOW.
IsSeen == <>[][\A t \in Threads : release(t) => t \notin within \/ ~word.slow]_vars

\* A newcomer does not find the lock given to another one each time that its spin ends.
CrowdEnds == <>[][~(sleep(Me) /\ pc'[Me] = "halt_apart")]_vars

\* All but the random choice.
UnluckySpec == Spec /\ Asks /\ SpinsEnd /\ VainSpinsEnd /\ IsSeen /\ RivalsEnd

FairSpec == UnluckySpec /\ WayIsMade

\* Who is woken again and again in one wait gets old, asks, and has the lock.
RivalsAge == \A t \in Threads \ {Me} : []<>(t \notin counted) \/ <>[]Asleep(t)

\* What it takes besides where unlocks are fair ones, which give the lock away again and again, and where sleeps end for no
\* reason: a counted thread may then be the spinner again and again.
FairCrowdSpec == FairSpec /\ CrowdEnds /\ RivalsAge

\* Whoever wants the lock gets it, or has given up.
Progress == pc[Me] = "spin" ~> Owns(Me) \/ (Timed /\ pc[Me] = "lock")

Symmetry == Permutations(Threads)

===============================================================================
