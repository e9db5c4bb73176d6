------------------------------- MODULE Overlock -------------------------------
(***************************************************************************)
(* How the recommended lock sleeps: crates/overlock-core/src/spin/         *)
(* overlock.rs and overlock/{queue,sleep,wait,wake}.rs. Steps are named    *)
(* after their functions, invariants as on the page of overlock.rs.        *)
(*                                                                         *)
(* Memory is sequentially consistent, but for the store that unlocks (UL): *)
(* that stays in the store buffer of its thread's CPU until the buffer     *)
(* empties. What depends on clocks and on what was learned is left open: a *)
(* sleeper finds the lock busy or not, and itself late or not, as it       *)
(* pleases. README.md says what else is left out, and why.                 *)
(***************************************************************************)
EXTENDS FiniteSets, Naturals, Sequences, TLC

CONSTANTS
    Threads,      \* each with a node of the same name
    Nobody,
    Me,           \* the thread whose progress is checked; all are alike
    Timers,       \* sleepers in the list wake by themselves
    Look,         \* before such a sleep: "brief", or "heavy": after a heavy barrier
    Claims,       \* a sleeper that has failed may claim the lock asleep
    Late,         \* sleepers may come late
    Surplus,      \* threads may wait for their turn first
    Timed,        \* waiters may give up
    FairUnlocks,  \* unlock_fair is used too
    Broken        \* "nothing", or what is wrong

ASSUME
    /\ {Timers, Claims, Late, Surplus, Timed, FairUnlocks} \subseteq BOOLEAN
    /\ Look \in {"brief", "heavy"} /\ Me \in Threads

(* --algorithm overlock
variables
    locked = "free",     \* or held, handed
    buffered = Nobody,   \* whose UL is in its store buffer: to all others the lock is still held
    guard = "free",      \* or held, marked
    \* Under the guard.
    sleepers = << >>,
    kick = "nothing",    \* or kick, hand_over; the kick table counts it in the same step
    awake = FALSE,       \* a sleeper has been called to a busy lock, and is on its way
    chosen = Nobody,
    \* Node::state: queued, called, claiming, given. And whether Node::kicks is not what its waiter has read.
    state = [t \in Threads |-> "called"],
    kicked = [t \in Threads |-> FALSE],
    \* Local to wake_one: whom to kick, and that another unlocker has marked the guard meanwhile.
    called = [t \in Threads |-> Nobody],
    again = [t \in Threads |-> FALSE],
    \* Who has acquired and not yet released; for Exclusion.
    holds = [t \in Threads |-> FALSE];

define
    \* As the thread itself sees it.
    Locked(t) == IF buffered = t THEN "free" ELSE locked
    First == Head(sleepers)
    Without(t) == SelectSeq(sleepers, LAMBDA u : u # t)
    IsHandedTo(t) == locked = "handed" /\ (chosen = t \/ Broken = "chosen_not_looked_at")
    \* Has read its kicks, and will compare them in its halt, or does so asleep.
    Watches(t) == pc[t] \in {"halt_state", "halt_halt", "halt_asleep", "claim_state", "claim_halt", "claim_asleep"}
    Asleep(t) == pc[t] \in {"halt_asleep", "claim_asleep"}
    \* Another thread has asked for the hand-over: ask_for leaves that alone.
    Theirs(t) == kick = "hand_over" /\ chosen # t
    AskFor(value, t) == IF Theirs(t) THEN kick ELSE value
end define;

\* The exchange of `locked` by which the thread becomes the owner. It empties the thread's store buffer, too.
macro take() begin
    locked := "held";
    buffered := IF buffered = self THEN Nobody ELSE buffered;
    holds[self] := TRUE;
end macro;

\* Every store buffer is empty after it.
macro heavy_barrier() begin
    locked := IF buffered = Nobody THEN locked ELSE "free";
    buffered := Nobody;
end macro;

macro acquire_guard() begin
    await guard = "free";
    guard := "held";
end macro;

\* Whoever was chosen and has not asked, nobody asks for.
macro end_request() begin
    asked := FALSE;
    chosen := IF chosen = self THEN Nobody ELSE chosen;
end macro;

macro kick_sleeper(t) begin
    if t # Nobody /\ Broken # "kick_forgotten" then
        kicked := [u \in Threads |-> kicked[u] \/ (u = t /\ Watches(u))];
    end if;
end macro;

\* Queue::drop
procedure drop_queue()
begin
drop_release:
    if guard = "marked" /\ Broken # "mark_ignored" then
        guard := "free";
    else
        guard := "free";
        return;
    end if;
drop_look:
    if locked = "free" then
        call wake_one();
        return;
    else
        return;
    end if;
end procedure;

procedure wake_one()
begin
\* UK
wake_request:
    if kick = "nothing" \/ Broken = "kick_not_looked_at" then
        return;
    end if;
wake_guard:
    if buffered = self then
        locked := "free";
        buffered := Nobody;
    end if;
    if guard = "free" then
        guard := "held";
    else
        guard := IF Broken = "guard_not_marked" THEN guard ELSE "marked";
        return;
    end if;
serve:
    if kick = "kick" /\ sleepers # << >> then
        \* call_first
        called[self] := First;
        state[First] := "called";
        with busy \in BOOLEAN do
            kick := IF busy \/ Len(sleepers) = 1 THEN "nothing" ELSE "kick";
            awake := busy;
        end with;
        sleepers := Tail(sleepers);
        goto serve_leave;
    elsif kick = "hand_over" /\ locked = "free" then
        locked := "handed";
    else
        goto serve_leave;
    end if;
call_chosen:
    kick := "nothing";
    if state[chosen] = "claiming" then
        called[self] := chosen;
        state[chosen] := "called";
    end if;
serve_leave:
    again[self] := guard = "marked";
    guard := "free";
    if called[self] = Nobody /\ ~again[self] then
        return;
    end if;
serve_kick:
    kick_sleeper(called[self]);
    called[self] := Nobody;
    if again[self] /\ locked = "free" then
        again[self] := FALSE;
        goto wake_request;
    else
        again[self] := FALSE;
        return;
    end if;
end procedure;

fair process thread \in Threads
variables
    announced = FALSE,   \* Place::announced; where we give up: on behalf of others
    was_called = FALSE,  \* Sleeper::kicked
    asked = FALSE,       \* Sleeper::asked
    firm = FALSE,        \* the next attempt is a claim
    first = Nobody;      \* a fair unlock: whom to kick
begin
\* Nothing makes a thread want the lock.
lock:-
    if Locked(self) = "free" then
        take();
        goto unlock;
    end if;

\* spin_first, and then whether to wait for a turn
lock_slow:
    if locked = "free" then
        take();
        goto unlock;
    else
        either
            skip;
        or
            await Surplus;
            goto compete;
        or
            await Timed;
            goto lock;
        end either;
    end if;

join:
    acquire_guard();
    sleepers := Append(sleepers, self);
    state[self] := "queued";
    announced := kick = "nothing" /\ ~awake;
    \* OK
    kick := IF kick = "nothing" /\ ~awake THEN "kick" ELSE kick;
    call drop_queue();

look:
    if ~announced then
        goto halt_kicks;
    elsif Look = "heavy" then
        heavy_barrier();
    else
        goto brief_look;
    end if;
\* OL
brief_look:
    announced := FALSE;
    if locked = "free" /\ Broken # "no_look" then
        take();
        goto leave;
    end if;

halt_kicks:
    kicked[self] := FALSE;
halt_state:
    if state[self] # "queued" then
        goto halt_woken;
    end if;
halt_halt:
    if Broken = "kicks_read_late" then
        kicked[self] := FALSE;
    elsif kicked[self] then
        goto halt_woken;
    end if;
halt_asleep:
    either
        await kicked[self];
    or
        await Timers \/ Timed;
        goto halt_due;
    end either;
halt_woken:
    kicked[self] := FALSE;
    if state[self] = "queued" then
        goto halt_kicks;
    elsif state[self] = "given" then
        goto was_given;
    else
        was_called := TRUE;
        goto compete;
    end if;

\* Its time is over, or the limit is reached.
halt_due:
    acquire_guard();
    kicked[self] := FALSE;
    if state[self] = "given" then
        call drop_queue();
        goto was_given;
    elsif state[self] = "called" then
        was_called := TRUE;
        call drop_queue();
        goto compete;
    else
        state[self] := "called";
        if Broken # "not_unlinked" then
            kick := IF Len(sleepers) = 1 THEN AskFor("nothing", self) ELSE kick;
            sleepers := Without(self);
        end if;
        either
            \* A deadline that finds the lock free does not end the wait.
            await Timers \/ (Timed /\ locked = "free");
            call drop_queue();
            goto compete;
        or
            await Timed;
            call drop_queue();
            goto lock;
        end either;
    end if;

was_given:
    if IsHandedTo(self) then
        take();
        goto settle;
    end if;

compete:
    if locked = "free" then
        take();
        goto settle;
    end if;
\* ask_for_hand_over
compete_ask:
    acquire_guard();
    if locked # "handed" /\ (kick = "hand_over" => firm /\ state[chosen] # "claiming") then
        asked := TRUE;
        chosen := self;
        state[self] := IF firm THEN "claiming" ELSE "called";
        \* OK
        kick := "hand_over";
    end if;
    call drop_queue();
compete_wait:
    if asked /\ firm then
        goto claim;
    elsif locked = "free" \/ (asked /\ IsHandedTo(self)) then
        take();
        goto settle;
    else
        goto fall_back;
    end if;

\* claim, with last_look
claim:
    if Broken # "claim_without_barrier" then
        heavy_barrier();
    end if;
\* OL
last_look:
    if locked = "free" then
        take();
        goto settle;
    end if;
claim_kicks:
    kicked[self] := FALSE;
claim_state:
    if state[self] # "claiming" then
        goto claim_woken;
    end if;
claim_halt:
    if kicked[self] then
        goto claim_woken;
    end if;
claim_asleep:
    await kicked[self] \/ Timed;
claim_woken:
    kicked[self] := FALSE;
    if state[self] = "called" /\ IsHandedTo(self) then
        take();
        goto settle;
    else
        either
            goto claim_kicks;
        or
            await Timed;
        end either;
    end if;

fall_back:
    acquire_guard();
    if asked /\ IsHandedTo(self) /\ Broken # "hand_over_not_seen" then
        take();
        goto settle_queue;
    else
        awake := awake /\ ~was_called;
        was_called := FALSE;
        either
            \* Asleep again.
            announced := kick # "kick" /\ ~Theirs(self);
            sleepers := << self >> \o sleepers;
            state[self] := "queued";
            \* OK
            kick := AskFor("kick", self);
            end_request();
            with claims \in {FALSE, Claims} do
                firm := claims;
            end with;
            call drop_queue();
            goto look;
        or
            \* The same, but owners without a CPU pass it: it comes by its timer.
            await Timers;
            announced := TRUE;
            sleepers := << self >> \o sleepers;
            state[self] := "queued";
            kick := IF Broken = "request_taken_back" THEN "nothing" ELSE AskFor("nothing", self);
            end_request();
            firm := FALSE;
            call drop_queue();
            goto look;
        or
            \* The limit is reached.
            await Timed;
            announced := sleepers # << >> /\ ~Theirs(self);
            state[self] := "called";
            firm := FALSE;
            \* OK, for whoever is first now
            kick := AskFor(IF sleepers = << >> THEN "nothing" ELSE "kick", self);
            end_request();
            call drop_queue();
        end either;
    end if;

pass_on:
    if ~announced then
        goto lock;
    elsif Broken # "passed_on_without_barrier" then
        heavy_barrier();
    end if;
\* OL
pass_on_look:
    announced := FALSE;
    if locked = "free" then
        call wake_one();
        goto lock;
    else
        goto lock;
    end if;

\* The owner.
leave:
    acquire_guard();
    if state[self] = "queued" then
        sleepers := Without(self);
    else
        awake := FALSE;
    end if;
    state[self] := "called";
    kick := AskFor(IF sleepers = << >> \/ awake THEN "nothing" ELSE "kick", self);
    call drop_queue();
    goto unlock;

settle:
    acquire_guard();
settle_queue:
    awake := awake /\ ~was_called;
    with late \in {FALSE, Late} do
        kick := AskFor(IF sleepers = << >> \/ awake \/ late THEN "nothing" ELSE "kick", self);
    end with;
    end_request();
    was_called := FALSE || firm := FALSE;
    state[self] := "called";
    call drop_queue();

unlock:
    either
        await FairUnlocks /\ (sleepers # << >> \/ kick # "nothing");
    or
        goto unlock_store;
    end either;

\* give_away
give_away:
    if guard # "free" then
        goto unlock_store;
    else
        guard := "held";
    end if;
give_look:
    if kick # "hand_over" /\ sleepers = << >> then
        call drop_queue();
        goto unlock_store;
    else
        locked := "handed";
        holds[self] := FALSE;
    end if;
give:
    if kick = "hand_over" then
        kick := "nothing";
        first := IF state[chosen] = "claiming" THEN chosen ELSE Nobody;
        state[chosen] := "called";
    else
        first := First;
        chosen := First;
        kick := IF Len(sleepers) = 1 THEN "nothing" ELSE kick;
        state[First] := "given";
        sleepers := Tail(sleepers);
    end if;
    call drop_queue();
give_kick:
    kick_sleeper(first);
    first := Nobody;
    goto lock;

\* UL
unlock_store:
    buffered := self;
    holds[self] := FALSE;
    call wake_one();
    goto lock;
end process;

\* A store buffer empties in the end.
fair process memory = "memory"
begin
flush:
    while TRUE do
        await buffered # Nobody;
        locked := "free";
        buffered := Nobody;
    end while;
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
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-d82ea0f9f9d0263ce8e46fd325e54597
VARIABLES locked, buffered, guard, sleepers, kick, awake, chosen, state, 
          kicked, called, again, holds, pc, stack

(* define statement *)
Locked(t) == IF buffered = t THEN "free" ELSE locked
First == Head(sleepers)
Without(t) == SelectSeq(sleepers, LAMBDA u : u # t)
IsHandedTo(t) == locked = "handed" /\ (chosen = t \/ Broken = "chosen_not_looked_at")

Watches(t) == pc[t] \in {"halt_state", "halt_halt", "halt_asleep", "claim_state", "claim_halt", "claim_asleep"}
Asleep(t) == pc[t] \in {"halt_asleep", "claim_asleep"}

Theirs(t) == kick = "hand_over" /\ chosen # t
AskFor(value, t) == IF Theirs(t) THEN kick ELSE value

VARIABLES announced, was_called, asked, firm, first

vars == << locked, buffered, guard, sleepers, kick, awake, chosen, state, 
           kicked, called, again, holds, pc, stack, announced, was_called, 
           asked, firm, first >>

ProcSet == (Threads) \cup {"memory"} \cup {"world"}

Init == (* Global variables *)
        /\ locked = "free"
        /\ buffered = Nobody
        /\ guard = "free"
        /\ sleepers = << >>
        /\ kick = "nothing"
        /\ awake = FALSE
        /\ chosen = Nobody
        /\ state = [t \in Threads |-> "called"]
        /\ kicked = [t \in Threads |-> FALSE]
        /\ called = [t \in Threads |-> Nobody]
        /\ again = [t \in Threads |-> FALSE]
        /\ holds = [t \in Threads |-> FALSE]
        (* Process thread *)
        /\ announced = [self \in Threads |-> FALSE]
        /\ was_called = [self \in Threads |-> FALSE]
        /\ asked = [self \in Threads |-> FALSE]
        /\ firm = [self \in Threads |-> FALSE]
        /\ first = [self \in Threads |-> Nobody]
        /\ stack = [self \in ProcSet |-> << >>]
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "lock"
                                        [] self = "memory" -> "flush"
                                        [] self = "world" -> "wakes"]

drop_release(self) == /\ pc[self] = "drop_release"
                      /\ IF guard = "marked" /\ Broken # "mark_ignored"
                            THEN /\ guard' = "free"
                                 /\ pc' = [pc EXCEPT ![self] = "drop_look"]
                                 /\ stack' = stack
                            ELSE /\ guard' = "free"
                                 /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                                 /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                      /\ UNCHANGED << locked, buffered, sleepers, kick, awake, 
                                      chosen, state, kicked, called, again, 
                                      holds, announced, was_called, asked, 
                                      firm, first >>

drop_look(self) == /\ pc[self] = "drop_look"
                   /\ IF locked = "free"
                         THEN /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "wake_one",
                                                                       pc        |->  Head(stack[self]).pc ] >>
                                                                   \o Tail(stack[self])]
                              /\ pc' = [pc EXCEPT ![self] = "wake_request"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                              /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                   /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                   awake, chosen, state, kicked, called, again, 
                                   holds, announced, was_called, asked, firm, 
                                   first >>

drop_queue(self) == drop_release(self) \/ drop_look(self)

wake_request(self) == /\ pc[self] = "wake_request"
                      /\ IF kick = "nothing" \/ Broken = "kick_not_looked_at"
                            THEN /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                                 /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "wake_guard"]
                                 /\ stack' = stack
                      /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                      awake, chosen, state, kicked, called, 
                                      again, holds, announced, was_called, 
                                      asked, firm, first >>

wake_guard(self) == /\ pc[self] = "wake_guard"
                    /\ IF buffered = self
                          THEN /\ locked' = "free"
                               /\ buffered' = Nobody
                          ELSE /\ TRUE
                               /\ UNCHANGED << locked, buffered >>
                    /\ IF guard = "free"
                          THEN /\ guard' = "held"
                               /\ pc' = [pc EXCEPT ![self] = "serve"]
                               /\ stack' = stack
                          ELSE /\ guard' = (IF Broken = "guard_not_marked" THEN guard ELSE "marked")
                               /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                               /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                    /\ UNCHANGED << sleepers, kick, awake, chosen, state, 
                                    kicked, called, again, holds, announced, 
                                    was_called, asked, firm, first >>

serve(self) == /\ pc[self] = "serve"
               /\ IF kick = "kick" /\ sleepers # << >>
                     THEN /\ called' = [called EXCEPT ![self] = First]
                          /\ state' = [state EXCEPT ![First] = "called"]
                          /\ \E busy \in BOOLEAN:
                               /\ kick' = (IF busy \/ Len(sleepers) = 1 THEN "nothing" ELSE "kick")
                               /\ awake' = busy
                          /\ sleepers' = Tail(sleepers)
                          /\ pc' = [pc EXCEPT ![self] = "serve_leave"]
                          /\ UNCHANGED locked
                     ELSE /\ IF kick = "hand_over" /\ locked = "free"
                                THEN /\ locked' = "handed"
                                     /\ pc' = [pc EXCEPT ![self] = "call_chosen"]
                                ELSE /\ pc' = [pc EXCEPT ![self] = "serve_leave"]
                                     /\ UNCHANGED locked
                          /\ UNCHANGED << sleepers, kick, awake, state, called >>
               /\ UNCHANGED << buffered, guard, chosen, kicked, again, holds, 
                               stack, announced, was_called, asked, firm, 
                               first >>

call_chosen(self) == /\ pc[self] = "call_chosen"
                     /\ kick' = "nothing"
                     /\ IF state[chosen] = "claiming"
                           THEN /\ called' = [called EXCEPT ![self] = chosen]
                                /\ state' = [state EXCEPT ![chosen] = "called"]
                           ELSE /\ TRUE
                                /\ UNCHANGED << state, called >>
                     /\ pc' = [pc EXCEPT ![self] = "serve_leave"]
                     /\ UNCHANGED << locked, buffered, guard, sleepers, awake, 
                                     chosen, kicked, again, holds, stack, 
                                     announced, was_called, asked, firm, first >>

serve_leave(self) == /\ pc[self] = "serve_leave"
                     /\ again' = [again EXCEPT ![self] = guard = "marked"]
                     /\ guard' = "free"
                     /\ IF called[self] = Nobody /\ ~again'[self]
                           THEN /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                                /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "serve_kick"]
                                /\ stack' = stack
                     /\ UNCHANGED << locked, buffered, sleepers, kick, awake, 
                                     chosen, state, kicked, called, holds, 
                                     announced, was_called, asked, firm, first >>

serve_kick(self) == /\ pc[self] = "serve_kick"
                    /\ IF (called[self]) # Nobody /\ Broken # "kick_forgotten"
                          THEN /\ kicked' = [u \in Threads |-> kicked[u] \/ (u = (called[self]) /\ Watches(u))]
                          ELSE /\ TRUE
                               /\ UNCHANGED kicked
                    /\ called' = [called EXCEPT ![self] = Nobody]
                    /\ IF again[self] /\ locked = "free"
                          THEN /\ again' = [again EXCEPT ![self] = FALSE]
                               /\ pc' = [pc EXCEPT ![self] = "wake_request"]
                               /\ stack' = stack
                          ELSE /\ again' = [again EXCEPT ![self] = FALSE]
                               /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                               /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                    /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                    awake, chosen, state, holds, announced, 
                                    was_called, asked, firm, first >>

wake_one(self) == wake_request(self) \/ wake_guard(self) \/ serve(self)
                     \/ call_chosen(self) \/ serve_leave(self)
                     \/ serve_kick(self)

lock(self) == /\ pc[self] = "lock"
              /\ IF Locked(self) = "free"
                    THEN /\ locked' = "held"
                         /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                         /\ holds' = [holds EXCEPT ![self] = TRUE]
                         /\ pc' = [pc EXCEPT ![self] = "unlock"]
                    ELSE /\ pc' = [pc EXCEPT ![self] = "lock_slow"]
                         /\ UNCHANGED << locked, buffered, holds >>
              /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                              kicked, called, again, stack, announced, 
                              was_called, asked, firm, first >>

lock_slow(self) == /\ pc[self] = "lock_slow"
                   /\ IF locked = "free"
                         THEN /\ locked' = "held"
                              /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                              /\ holds' = [holds EXCEPT ![self] = TRUE]
                              /\ pc' = [pc EXCEPT ![self] = "unlock"]
                         ELSE /\ \/ /\ TRUE
                                    /\ pc' = [pc EXCEPT ![self] = "join"]
                                 \/ /\ Surplus
                                    /\ pc' = [pc EXCEPT ![self] = "compete"]
                                 \/ /\ Timed
                                    /\ pc' = [pc EXCEPT ![self] = "lock"]
                              /\ UNCHANGED << locked, buffered, holds >>
                   /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                                   kicked, called, again, stack, announced, 
                                   was_called, asked, firm, first >>

join(self) == /\ pc[self] = "join"
              /\ guard = "free"
              /\ guard' = "held"
              /\ sleepers' = Append(sleepers, self)
              /\ state' = [state EXCEPT ![self] = "queued"]
              /\ announced' = [announced EXCEPT ![self] = kick = "nothing" /\ ~awake]
              /\ kick' = (IF kick = "nothing" /\ ~awake THEN "kick" ELSE kick)
              /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                       pc        |->  "look" ] >>
                                                   \o stack[self]]
              /\ pc' = [pc EXCEPT ![self] = "drop_release"]
              /\ UNCHANGED << locked, buffered, awake, chosen, kicked, called, 
                              again, holds, was_called, asked, firm, first >>

look(self) == /\ pc[self] = "look"
              /\ IF ~announced[self]
                    THEN /\ pc' = [pc EXCEPT ![self] = "halt_kicks"]
                         /\ UNCHANGED << locked, buffered >>
                    ELSE /\ IF Look = "heavy"
                               THEN /\ locked' = (IF buffered = Nobody THEN locked ELSE "free")
                                    /\ buffered' = Nobody
                                    /\ pc' = [pc EXCEPT ![self] = "brief_look"]
                               ELSE /\ pc' = [pc EXCEPT ![self] = "brief_look"]
                                    /\ UNCHANGED << locked, buffered >>
              /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                              kicked, called, again, holds, stack, announced, 
                              was_called, asked, firm, first >>

brief_look(self) == /\ pc[self] = "brief_look"
                    /\ announced' = [announced EXCEPT ![self] = FALSE]
                    /\ IF locked = "free" /\ Broken # "no_look"
                          THEN /\ locked' = "held"
                               /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                               /\ holds' = [holds EXCEPT ![self] = TRUE]
                               /\ pc' = [pc EXCEPT ![self] = "leave"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "halt_kicks"]
                               /\ UNCHANGED << locked, buffered, holds >>
                    /\ UNCHANGED << guard, sleepers, kick, awake, chosen, 
                                    state, kicked, called, again, stack, 
                                    was_called, asked, firm, first >>

halt_kicks(self) == /\ pc[self] = "halt_kicks"
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ pc' = [pc EXCEPT ![self] = "halt_state"]
                    /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                    awake, chosen, state, called, again, holds, 
                                    stack, announced, was_called, asked, firm, 
                                    first >>

halt_state(self) == /\ pc[self] = "halt_state"
                    /\ IF state[self] # "queued"
                          THEN /\ pc' = [pc EXCEPT ![self] = "halt_woken"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "halt_halt"]
                    /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                    awake, chosen, state, kicked, called, 
                                    again, holds, stack, announced, was_called, 
                                    asked, firm, first >>

halt_halt(self) == /\ pc[self] = "halt_halt"
                   /\ IF Broken = "kicks_read_late"
                         THEN /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                              /\ pc' = [pc EXCEPT ![self] = "halt_asleep"]
                         ELSE /\ IF kicked[self]
                                    THEN /\ pc' = [pc EXCEPT ![self] = "halt_woken"]
                                    ELSE /\ pc' = [pc EXCEPT ![self] = "halt_asleep"]
                              /\ UNCHANGED kicked
                   /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                   awake, chosen, state, called, again, holds, 
                                   stack, announced, was_called, asked, firm, 
                                   first >>

halt_asleep(self) == /\ pc[self] = "halt_asleep"
                     /\ \/ /\ kicked[self]
                           /\ pc' = [pc EXCEPT ![self] = "halt_woken"]
                        \/ /\ Timers \/ Timed
                           /\ pc' = [pc EXCEPT ![self] = "halt_due"]
                     /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                     awake, chosen, state, kicked, called, 
                                     again, holds, stack, announced, 
                                     was_called, asked, firm, first >>

halt_woken(self) == /\ pc[self] = "halt_woken"
                    /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                    /\ IF state[self] = "queued"
                          THEN /\ pc' = [pc EXCEPT ![self] = "halt_kicks"]
                               /\ UNCHANGED was_called
                          ELSE /\ IF state[self] = "given"
                                     THEN /\ pc' = [pc EXCEPT ![self] = "was_given"]
                                          /\ UNCHANGED was_called
                                     ELSE /\ was_called' = [was_called EXCEPT ![self] = TRUE]
                                          /\ pc' = [pc EXCEPT ![self] = "compete"]
                    /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                    awake, chosen, state, called, again, holds, 
                                    stack, announced, asked, firm, first >>

halt_due(self) == /\ pc[self] = "halt_due"
                  /\ guard = "free"
                  /\ guard' = "held"
                  /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                  /\ IF state[self] = "given"
                        THEN /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                      pc        |->  "was_given" ] >>
                                                                  \o stack[self]]
                             /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                             /\ UNCHANGED << sleepers, kick, state, was_called >>
                        ELSE /\ IF state[self] = "called"
                                   THEN /\ was_called' = [was_called EXCEPT ![self] = TRUE]
                                        /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                                 pc        |->  "compete" ] >>
                                                                             \o stack[self]]
                                        /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                        /\ UNCHANGED << sleepers, kick, state >>
                                   ELSE /\ state' = [state EXCEPT ![self] = "called"]
                                        /\ IF Broken # "not_unlinked"
                                              THEN /\ kick' = (IF Len(sleepers) = 1 THEN AskFor("nothing", self) ELSE kick)
                                                   /\ sleepers' = Without(self)
                                              ELSE /\ TRUE
                                                   /\ UNCHANGED << sleepers, 
                                                                   kick >>
                                        /\ \/ /\ Timers \/ (Timed /\ locked = "free")
                                              /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                                       pc        |->  "compete" ] >>
                                                                                   \o stack[self]]
                                              /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                           \/ /\ Timed
                                              /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                                       pc        |->  "lock" ] >>
                                                                                   \o stack[self]]
                                              /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                        /\ UNCHANGED was_called
                  /\ UNCHANGED << locked, buffered, awake, chosen, called, 
                                  again, holds, announced, asked, firm, first >>

was_given(self) == /\ pc[self] = "was_given"
                   /\ IF IsHandedTo(self)
                         THEN /\ locked' = "held"
                              /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                              /\ holds' = [holds EXCEPT ![self] = TRUE]
                              /\ pc' = [pc EXCEPT ![self] = "settle"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = "compete"]
                              /\ UNCHANGED << locked, buffered, holds >>
                   /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                                   kicked, called, again, stack, announced, 
                                   was_called, asked, firm, first >>

compete(self) == /\ pc[self] = "compete"
                 /\ IF locked = "free"
                       THEN /\ locked' = "held"
                            /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                            /\ holds' = [holds EXCEPT ![self] = TRUE]
                            /\ pc' = [pc EXCEPT ![self] = "settle"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "compete_ask"]
                            /\ UNCHANGED << locked, buffered, holds >>
                 /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                                 kicked, called, again, stack, announced, 
                                 was_called, asked, firm, first >>

compete_ask(self) == /\ pc[self] = "compete_ask"
                     /\ guard = "free"
                     /\ guard' = "held"
                     /\ IF locked # "handed" /\ (kick = "hand_over" => firm[self] /\ state[chosen] # "claiming")
                           THEN /\ asked' = [asked EXCEPT ![self] = TRUE]
                                /\ chosen' = self
                                /\ state' = [state EXCEPT ![self] = IF firm[self] THEN "claiming" ELSE "called"]
                                /\ kick' = "hand_over"
                           ELSE /\ TRUE
                                /\ UNCHANGED << kick, chosen, state, asked >>
                     /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                              pc        |->  "compete_wait" ] >>
                                                          \o stack[self]]
                     /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                     /\ UNCHANGED << locked, buffered, sleepers, awake, kicked, 
                                     called, again, holds, announced, 
                                     was_called, firm, first >>

compete_wait(self) == /\ pc[self] = "compete_wait"
                      /\ IF asked[self] /\ firm[self]
                            THEN /\ pc' = [pc EXCEPT ![self] = "claim"]
                                 /\ UNCHANGED << locked, buffered, holds >>
                            ELSE /\ IF locked = "free" \/ (asked[self] /\ IsHandedTo(self))
                                       THEN /\ locked' = "held"
                                            /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                                            /\ holds' = [holds EXCEPT ![self] = TRUE]
                                            /\ pc' = [pc EXCEPT ![self] = "settle"]
                                       ELSE /\ pc' = [pc EXCEPT ![self] = "fall_back"]
                                            /\ UNCHANGED << locked, buffered, 
                                                            holds >>
                      /\ UNCHANGED << guard, sleepers, kick, awake, chosen, 
                                      state, kicked, called, again, stack, 
                                      announced, was_called, asked, firm, 
                                      first >>

claim(self) == /\ pc[self] = "claim"
               /\ IF Broken # "claim_without_barrier"
                     THEN /\ locked' = (IF buffered = Nobody THEN locked ELSE "free")
                          /\ buffered' = Nobody
                     ELSE /\ TRUE
                          /\ UNCHANGED << locked, buffered >>
               /\ pc' = [pc EXCEPT ![self] = "last_look"]
               /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                               kicked, called, again, holds, stack, announced, 
                               was_called, asked, firm, first >>

last_look(self) == /\ pc[self] = "last_look"
                   /\ IF locked = "free"
                         THEN /\ locked' = "held"
                              /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                              /\ holds' = [holds EXCEPT ![self] = TRUE]
                              /\ pc' = [pc EXCEPT ![self] = "settle"]
                         ELSE /\ pc' = [pc EXCEPT ![self] = "claim_kicks"]
                              /\ UNCHANGED << locked, buffered, holds >>
                   /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                                   kicked, called, again, stack, announced, 
                                   was_called, asked, firm, first >>

claim_kicks(self) == /\ pc[self] = "claim_kicks"
                     /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                     /\ pc' = [pc EXCEPT ![self] = "claim_state"]
                     /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                     awake, chosen, state, called, again, 
                                     holds, stack, announced, was_called, 
                                     asked, firm, first >>

claim_state(self) == /\ pc[self] = "claim_state"
                     /\ IF state[self] # "claiming"
                           THEN /\ pc' = [pc EXCEPT ![self] = "claim_woken"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "claim_halt"]
                     /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                     awake, chosen, state, kicked, called, 
                                     again, holds, stack, announced, 
                                     was_called, asked, firm, first >>

claim_halt(self) == /\ pc[self] = "claim_halt"
                    /\ IF kicked[self]
                          THEN /\ pc' = [pc EXCEPT ![self] = "claim_woken"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "claim_asleep"]
                    /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                    awake, chosen, state, kicked, called, 
                                    again, holds, stack, announced, was_called, 
                                    asked, firm, first >>

claim_asleep(self) == /\ pc[self] = "claim_asleep"
                      /\ kicked[self] \/ Timed
                      /\ pc' = [pc EXCEPT ![self] = "claim_woken"]
                      /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                      awake, chosen, state, kicked, called, 
                                      again, holds, stack, announced, 
                                      was_called, asked, firm, first >>

claim_woken(self) == /\ pc[self] = "claim_woken"
                     /\ kicked' = [kicked EXCEPT ![self] = FALSE]
                     /\ IF state[self] = "called" /\ IsHandedTo(self)
                           THEN /\ locked' = "held"
                                /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                                /\ holds' = [holds EXCEPT ![self] = TRUE]
                                /\ pc' = [pc EXCEPT ![self] = "settle"]
                           ELSE /\ \/ /\ pc' = [pc EXCEPT ![self] = "claim_kicks"]
                                   \/ /\ Timed
                                      /\ pc' = [pc EXCEPT ![self] = "fall_back"]
                                /\ UNCHANGED << locked, buffered, holds >>
                     /\ UNCHANGED << guard, sleepers, kick, awake, chosen, 
                                     state, called, again, stack, announced, 
                                     was_called, asked, firm, first >>

fall_back(self) == /\ pc[self] = "fall_back"
                   /\ guard = "free"
                   /\ guard' = "held"
                   /\ IF asked[self] /\ IsHandedTo(self) /\ Broken # "hand_over_not_seen"
                         THEN /\ locked' = "held"
                              /\ buffered' = (IF buffered = self THEN Nobody ELSE buffered)
                              /\ holds' = [holds EXCEPT ![self] = TRUE]
                              /\ pc' = [pc EXCEPT ![self] = "settle_queue"]
                              /\ UNCHANGED << sleepers, kick, awake, chosen, 
                                              state, stack, announced, 
                                              was_called, asked, firm >>
                         ELSE /\ awake' = (awake /\ ~was_called[self])
                              /\ was_called' = [was_called EXCEPT ![self] = FALSE]
                              /\ \/ /\ announced' = [announced EXCEPT ![self] = kick # "kick" /\ ~Theirs(self)]
                                    /\ sleepers' = << self >> \o sleepers
                                    /\ state' = [state EXCEPT ![self] = "queued"]
                                    /\ kick' = AskFor("kick", self)
                                    /\ asked' = [asked EXCEPT ![self] = FALSE]
                                    /\ chosen' = (IF chosen = self THEN Nobody ELSE chosen)
                                    /\ \E claims \in {FALSE, Claims}:
                                         firm' = [firm EXCEPT ![self] = claims]
                                    /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                             pc        |->  "look" ] >>
                                                                         \o stack[self]]
                                    /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                 \/ /\ Timers
                                    /\ announced' = [announced EXCEPT ![self] = TRUE]
                                    /\ sleepers' = << self >> \o sleepers
                                    /\ state' = [state EXCEPT ![self] = "queued"]
                                    /\ kick' = (IF Broken = "request_taken_back" THEN "nothing" ELSE AskFor("nothing", self))
                                    /\ asked' = [asked EXCEPT ![self] = FALSE]
                                    /\ chosen' = (IF chosen = self THEN Nobody ELSE chosen)
                                    /\ firm' = [firm EXCEPT ![self] = FALSE]
                                    /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                             pc        |->  "look" ] >>
                                                                         \o stack[self]]
                                    /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                 \/ /\ Timed
                                    /\ announced' = [announced EXCEPT ![self] = sleepers # << >> /\ ~Theirs(self)]
                                    /\ state' = [state EXCEPT ![self] = "called"]
                                    /\ firm' = [firm EXCEPT ![self] = FALSE]
                                    /\ kick' = AskFor(IF sleepers = << >> THEN "nothing" ELSE "kick", self)
                                    /\ asked' = [asked EXCEPT ![self] = FALSE]
                                    /\ chosen' = (IF chosen = self THEN Nobody ELSE chosen)
                                    /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                             pc        |->  "pass_on" ] >>
                                                                         \o stack[self]]
                                    /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                                    /\ UNCHANGED sleepers
                              /\ UNCHANGED << locked, buffered, holds >>
                   /\ UNCHANGED << kicked, called, again, first >>

pass_on(self) == /\ pc[self] = "pass_on"
                 /\ IF ~announced[self]
                       THEN /\ pc' = [pc EXCEPT ![self] = "lock"]
                            /\ UNCHANGED << locked, buffered >>
                       ELSE /\ IF Broken # "passed_on_without_barrier"
                                  THEN /\ locked' = (IF buffered = Nobody THEN locked ELSE "free")
                                       /\ buffered' = Nobody
                                  ELSE /\ TRUE
                                       /\ UNCHANGED << locked, buffered >>
                            /\ pc' = [pc EXCEPT ![self] = "pass_on_look"]
                 /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, 
                                 kicked, called, again, holds, stack, 
                                 announced, was_called, asked, firm, first >>

pass_on_look(self) == /\ pc[self] = "pass_on_look"
                      /\ announced' = [announced EXCEPT ![self] = FALSE]
                      /\ IF locked = "free"
                            THEN /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "wake_one",
                                                                          pc        |->  "lock" ] >>
                                                                      \o stack[self]]
                                 /\ pc' = [pc EXCEPT ![self] = "wake_request"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "lock"]
                                 /\ stack' = stack
                      /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                      awake, chosen, state, kicked, called, 
                                      again, holds, was_called, asked, firm, 
                                      first >>

leave(self) == /\ pc[self] = "leave"
               /\ guard = "free"
               /\ guard' = "held"
               /\ IF state[self] = "queued"
                     THEN /\ sleepers' = Without(self)
                          /\ awake' = awake
                     ELSE /\ awake' = FALSE
                          /\ UNCHANGED sleepers
               /\ state' = [state EXCEPT ![self] = "called"]
               /\ kick' = AskFor(IF sleepers' = << >> \/ awake' THEN "nothing" ELSE "kick", self)
               /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                        pc        |->  "unlock" ] >>
                                                    \o stack[self]]
               /\ pc' = [pc EXCEPT ![self] = "drop_release"]
               /\ UNCHANGED << locked, buffered, chosen, kicked, called, again, 
                               holds, announced, was_called, asked, firm, 
                               first >>

settle(self) == /\ pc[self] = "settle"
                /\ guard = "free"
                /\ guard' = "held"
                /\ pc' = [pc EXCEPT ![self] = "settle_queue"]
                /\ UNCHANGED << locked, buffered, sleepers, kick, awake, 
                                chosen, state, kicked, called, again, holds, 
                                stack, announced, was_called, asked, firm, 
                                first >>

settle_queue(self) == /\ pc[self] = "settle_queue"
                      /\ awake' = (awake /\ ~was_called[self])
                      /\ \E late \in {FALSE, Late}:
                           kick' = AskFor(IF sleepers = << >> \/ awake' \/ late THEN "nothing" ELSE "kick", self)
                      /\ asked' = [asked EXCEPT ![self] = FALSE]
                      /\ chosen' = (IF chosen = self THEN Nobody ELSE chosen)
                      /\ /\ firm' = [firm EXCEPT ![self] = FALSE]
                         /\ was_called' = [was_called EXCEPT ![self] = FALSE]
                      /\ state' = [state EXCEPT ![self] = "called"]
                      /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                               pc        |->  "unlock" ] >>
                                                           \o stack[self]]
                      /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                      /\ UNCHANGED << locked, buffered, guard, sleepers, 
                                      kicked, called, again, holds, announced, 
                                      first >>

unlock(self) == /\ pc[self] = "unlock"
                /\ \/ /\ FairUnlocks /\ (sleepers # << >> \/ kick # "nothing")
                      /\ pc' = [pc EXCEPT ![self] = "give_away"]
                   \/ /\ pc' = [pc EXCEPT ![self] = "unlock_store"]
                /\ UNCHANGED << locked, buffered, guard, sleepers, kick, awake, 
                                chosen, state, kicked, called, again, holds, 
                                stack, announced, was_called, asked, firm, 
                                first >>

give_away(self) == /\ pc[self] = "give_away"
                   /\ IF guard # "free"
                         THEN /\ pc' = [pc EXCEPT ![self] = "unlock_store"]
                              /\ guard' = guard
                         ELSE /\ guard' = "held"
                              /\ pc' = [pc EXCEPT ![self] = "give_look"]
                   /\ UNCHANGED << locked, buffered, sleepers, kick, awake, 
                                   chosen, state, kicked, called, again, holds, 
                                   stack, announced, was_called, asked, firm, 
                                   first >>

give_look(self) == /\ pc[self] = "give_look"
                   /\ IF kick # "hand_over" /\ sleepers = << >>
                         THEN /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                                       pc        |->  "unlock_store" ] >>
                                                                   \o stack[self]]
                              /\ pc' = [pc EXCEPT ![self] = "drop_release"]
                              /\ UNCHANGED << locked, holds >>
                         ELSE /\ locked' = "handed"
                              /\ holds' = [holds EXCEPT ![self] = FALSE]
                              /\ pc' = [pc EXCEPT ![self] = "give"]
                              /\ stack' = stack
                   /\ UNCHANGED << buffered, guard, sleepers, kick, awake, 
                                   chosen, state, kicked, called, again, 
                                   announced, was_called, asked, firm, first >>

give(self) == /\ pc[self] = "give"
              /\ IF kick = "hand_over"
                    THEN /\ kick' = "nothing"
                         /\ first' = [first EXCEPT ![self] = IF state[chosen] = "claiming" THEN chosen ELSE Nobody]
                         /\ state' = [state EXCEPT ![chosen] = "called"]
                         /\ UNCHANGED << sleepers, chosen >>
                    ELSE /\ first' = [first EXCEPT ![self] = First]
                         /\ chosen' = First
                         /\ kick' = (IF Len(sleepers) = 1 THEN "nothing" ELSE kick)
                         /\ state' = [state EXCEPT ![First] = "given"]
                         /\ sleepers' = Tail(sleepers)
              /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "drop_queue",
                                                       pc        |->  "give_kick" ] >>
                                                   \o stack[self]]
              /\ pc' = [pc EXCEPT ![self] = "drop_release"]
              /\ UNCHANGED << locked, buffered, guard, awake, kicked, called, 
                              again, holds, announced, was_called, asked, firm >>

give_kick(self) == /\ pc[self] = "give_kick"
                   /\ IF first[self] # Nobody /\ Broken # "kick_forgotten"
                         THEN /\ kicked' = [u \in Threads |-> kicked[u] \/ (u = first[self] /\ Watches(u))]
                         ELSE /\ TRUE
                              /\ UNCHANGED kicked
                   /\ first' = [first EXCEPT ![self] = Nobody]
                   /\ pc' = [pc EXCEPT ![self] = "lock"]
                   /\ UNCHANGED << locked, buffered, guard, sleepers, kick, 
                                   awake, chosen, state, called, again, holds, 
                                   stack, announced, was_called, asked, firm >>

unlock_store(self) == /\ pc[self] = "unlock_store"
                      /\ buffered' = self
                      /\ holds' = [holds EXCEPT ![self] = FALSE]
                      /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "wake_one",
                                                               pc        |->  "lock" ] >>
                                                           \o stack[self]]
                      /\ pc' = [pc EXCEPT ![self] = "wake_request"]
                      /\ UNCHANGED << locked, guard, sleepers, kick, awake, 
                                      chosen, state, kicked, called, again, 
                                      announced, was_called, asked, firm, 
                                      first >>

thread(self) == lock(self) \/ lock_slow(self) \/ join(self) \/ look(self)
                   \/ brief_look(self) \/ halt_kicks(self)
                   \/ halt_state(self) \/ halt_halt(self)
                   \/ halt_asleep(self) \/ halt_woken(self)
                   \/ halt_due(self) \/ was_given(self) \/ compete(self)
                   \/ compete_ask(self) \/ compete_wait(self)
                   \/ claim(self) \/ last_look(self) \/ claim_kicks(self)
                   \/ claim_state(self) \/ claim_halt(self)
                   \/ claim_asleep(self) \/ claim_woken(self)
                   \/ fall_back(self) \/ pass_on(self)
                   \/ pass_on_look(self) \/ leave(self) \/ settle(self)
                   \/ settle_queue(self) \/ unlock(self) \/ give_away(self)
                   \/ give_look(self) \/ give(self) \/ give_kick(self)
                   \/ unlock_store(self)

flush == /\ pc["memory"] = "flush"
         /\ buffered # Nobody
         /\ locked' = "free"
         /\ buffered' = Nobody
         /\ pc' = [pc EXCEPT !["memory"] = "flush"]
         /\ UNCHANGED << guard, sleepers, kick, awake, chosen, state, kicked, 
                         called, again, holds, stack, announced, was_called, 
                         asked, firm, first >>

memory == flush

wakes == /\ pc["world"] = "wakes"
         /\ \E t \in {t \in Threads : Asleep(t) /\ ~kicked[t]}:
              kicked' = [kicked EXCEPT ![t] = TRUE]
         /\ pc' = [pc EXCEPT !["world"] = "wakes"]
         /\ UNCHANGED << locked, buffered, guard, sleepers, kick, awake, 
                         chosen, state, called, again, holds, stack, announced, 
                         was_called, asked, firm, first >>

world == wakes

Next == memory \/ world
           \/ (\E self \in ProcSet: drop_queue(self) \/ wake_one(self))
           \/ (\E self \in Threads: thread(self))

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Threads : /\ WF_vars((pc[self] # "lock") /\ thread(self))
                                 /\ WF_vars(drop_queue(self))
                                 /\ WF_vars(wake_one(self))
        /\ WF_vars(memory)

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-392322d789588faba270c81e0deeed45
-------------------------------------------------------------------------------
(* Safety *)

InList(t) == \E i \in DOMAIN sleepers : sleepers[i] = t

\* In a procedure that was called by a step of the thread before `step`.
ReturnsTo(t, step) == \E i \in DOMAIN stack[t] : stack[t][i].pc = step

\* From the return of its sleep to the next, or to the end of its call.
IsAwake(t) ==
    \/ pc[t] \in {"lock", "lock_slow", "was_given", "compete", "compete_ask", "compete_wait",
                  "claim", "last_look", "claim_kicks", "claim_state", "claim_halt", "claim_asleep", "claim_woken",
                  "settle", "settle_queue", "unlock"}
    \/ \E step \in {"lock", "was_given", "compete", "compete_wait", "unlock"} : ReturnsTo(t, step)

\* Waits for the answer to what it has asked.
HasAsked(t) ==
    asked[t] /\ (pc[t] \in {"compete_wait", "claim", "last_look", "claim_kicks", "claim_state", "claim_halt",
                            "claim_asleep", "claim_woken", "fall_back", "settle", "settle_queue"}
                 \/ ReturnsTo(t, "compete_wait"))

\* Was called, and has not said yet what came of it.
IsOnItsWay(t) ==
    was_called[t] \/ (state[t] = "called" /\ (pc[t] \in {"look", "brief_look", "leave", "halt_kicks", "halt_state",
                                                        "halt_halt", "halt_asleep", "halt_woken", "halt_due"}
                                              \/ ReturnsTo(t, "look") \/ ReturnsTo(t, "compete")))

TypeOK ==
    /\ locked \in {"free", "held", "handed"} /\ buffered \in Threads \union {Nobody}
    /\ guard \in {"free", "held", "marked"}
    /\ kick \in {"nothing", "kick", "hand_over"} /\ awake \in BOOLEAN /\ chosen \in Threads \union {Nobody}
    /\ \A i, j \in DOMAIN sleepers : sleepers[i] = sleepers[j] => i = j
    /\ state \in [Threads -> {"queued", "called", "claiming", "given"}]
    /\ kicked \in [Threads -> BOOLEAN]

Exclusion ==
    /\ \A t, u \in Threads : holds[t] /\ holds[u] => t = u
    /\ \A t \in Threads : holds[t] => locked = "held" /\ buffered = Nobody

I1_AwakeIsNotInTheList == \A t \in Threads : IsAwake(t) => ~InList(t)

\* With neither timers nor late sleepers: somebody is responsible for those in the list.
I2_NobodyForgotten ==
    guard = "free" /\ sleepers # << >> /\ ~Timers =>
        \/ kick # "nothing"
        \/ awake /\ \E t \in Threads : IsOnItsWay(t)
        \/ locked = "handed"
        \/ \E t \in Threads : pc[t] \in {"settle", "leave"}

I4_TakenByTheChosen == [][locked = "handed" /\ locked' = "held" => holds'[chosen]]_vars

\* But for the step in which a fair unlock says whose it is.
I4_ChosenStays ==
    [][locked = "handed" /\ locked' = "handed" /\ chosen' # chosen => \E t \in Threads : pc[t] = "give"]_vars

I5_KickForSomebody ==
    guard = "free" =>
        /\ kick = "kick" => sleepers # << >>
        /\ kick = "hand_over" => HasAsked(chosen)

\* Who has asked loses that to an unlocker, which serves it, or to a claim, unless it is one itself.
I6_RequestStands ==
    [][kick = "hand_over" /\ (kick' # kick \/ chosen' # chosen) =>
        \/ locked' = "handed"
        \/ pc'[chosen] # pc[chosen]
        \/ \E t \in Threads : pc[t] \in {"call_chosen", "give"}
        \/ state[chosen] # "claiming" /\ state'[chosen'] = "claiming"]_vars

\* What is left behind when nobody uses the lock.
IdleIsClean ==
    (\A t \in Threads : pc[t] = "lock") =>
        sleepers = << >> /\ kick = "nothing" /\ guard = "free" /\ locked # "handed" /\ ~awake

\* Who sleeps without a timer can count on somebody who is awake.
SomebodyIsAwake ==
    (\E t \in Threads : pc[t] = "claim_asleep" \/ (pc[t] = "halt_asleep" /\ ~Timers)) =>
        \E t \in Threads : pc[t] # "lock" /\ (Asleep(t) => kicked[t])

-------------------------------------------------------------------------------
(* Progress *)

RacesAreWon ==
    /\ Spec
    \* The guard is a test-and-set byte: who tries again and again gets it once.
    /\ \A t \in Threads : SF_vars(thread(t) /\ guard = "free" /\ guard' = "held")
    \* A timer ends in the end.
    /\ \A t \in Threads : SF_vars(halt_asleep(t) /\ pc'[t] = "halt_due")
    \* Who fails again and again claims, and a claim that is made again and again is heard.
    /\ SF_vars(fall_back(Me) /\ firm'[Me])
    /\ SF_vars(compete_ask(Me) /\ firm[Me] /\ asked'[Me])

\* Nobody sleeps on while the others leave the lock alone.
NobodySleepsBesideAFreeLock == []<>~(Asleep(Me) /\ \A t \in Threads \ {Me} : pc[t] = "lock")

InWakeOne(t) == pc[t] \in {"wake_request", "wake_guard", "serve", "call_chosen", "serve_leave", "serve_kick", "drop_look"}

\* Others do not mark the guard anew each time that a thread has done their work: nothing in the lock bounds that.
WakeOneReturns == \A t \in Threads : []<>~InWakeOne(t)

FairSpec == RacesAreWon /\ WakeOneReturns

\* Whoever wants the lock gets it, or has given up.
Progress == pc[Me] = "lock_slow" ~> pc[Me] = "unlock" \/ (Timed /\ pc[Me] = "lock")

Symmetry == Permutations(Threads)

===============================================================================
