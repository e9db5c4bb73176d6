---------------------------------- MODULE Osq ----------------------------------
(***************************************************************************)
(* The optimistic spin queue: crates/overlock-family/src/sleep/osq.rs. Steps *)
(* are named after its functions, invariants as on its page. Any waiter    *)
(* may give up at any moment.                                              *)
(*                                                                         *)
(* A thread has one node, and takes it from one queue to another.          *)
(* README.md says what is left out, and why.                               *)
(***************************************************************************)
EXTENDS FiniteSets, Naturals, TLC

CONSTANTS
    Threads,  \* each with a node of the same name
    Queues,
    Nobody,
    Ours,     \* OURS
    Me,       \* the thread whose progress is checked; all are alike
    Broken    \* "nothing", or what is wrong

ASSUME Me \in Threads

(* --algorithm osq
variables
    tail = [q \in Queues |-> Nobody],
    \* Node::next and Node::wait; `wait` is reset when a claim ends, since nobody looks at it then (Q4).
    next = [t \in Threads |-> Nobody],
    wait = [t \in Threads |-> Nobody];

process thread \in Threads
variables
    queue \in Queues,
    before = Nobody,  \* who stands before us: where we arrive, and while we leave
    after = Nobody;   \* who comes after us, once its link is ours
begin
arrive:
    with q \in Queues do
        queue := q;
    end with;
    next[self] := Nobody;
arrive_swap:
    before := tail[queue];
    tail[queue] := self;
    if before = Nobody then
        goto head;
    end if;

link_wait:
    wait[self] := before;
link_next:
    next[before] := self;
    before := Nobody;

waiting:
    either
        await wait[self] = Ours;
        goto head;
    or
        skip;  \* gives up
    end either;

unlink_look:
    if wait[self] # Ours then
        before := wait[self];
    elsif Broken = "ours_not_seen" then
        goto unlink_look;
    else
        goto head;
    end if;

\* A
unlink_exchange:
    if next[before] = self \/ Broken = "unlinked_by_store" then
        next[before] := Nobody;
    else
        before := Nobody;
        goto unlink_look;
    end if;

\* B
detach:
    either
        await tail[queue] = self;
        tail[queue] := before;
        before := Nobody;
        wait[self] := Nobody;
        goto arrive;
    or
        await next[self] # Nobody;
        after := next[self];
        next[self] := IF Broken = "link_read" THEN after ELSE Nobody;
    or
        await Broken = "link_not_awaited" /\ tail[queue] # self /\ next[self] = Nobody;
        before := Nobody;
        wait[self] := Nobody;
        goto arrive;
    end either;

\* C
relink_wait:
    if Broken = "linked_before_wait" then
        next[before] := after;
    elsif Broken # "wait_not_written" then
        wait[after] := before;
    end if;
relink_next:
    if Broken = "linked_before_wait" then
        wait[after] := before || wait[self] := Nobody;
    else
        next[before] := after;
        wait[self] := Nobody;
    end if;
    before := Nobody || after := Nobody;
    goto arrive;

head:
    wait[self] := Nobody;
    before := Nobody;

unlock:
    either
        await tail[queue] = self;
        tail[queue] := Nobody;
        goto arrive;
    or
        await next[self] # Nobody;
        after := next[self];
        next[self] := IF Broken = "link_read_by_head" THEN after ELSE Nobody;
    or
        await Broken = "head_link_not_awaited" /\ tail[queue] # self /\ next[self] = Nobody;
        goto arrive;
    end either;

unlock_ours:
    wait[after] := Ours;
    after := Nobody;
    goto arrive;
end process;
end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-59bf597723d27fb5e1fb5c26bfbab4ef
VARIABLES tail, next, wait, pc, queue, before, after

vars == << tail, next, wait, pc, queue, before, after >>

ProcSet == (Threads)

Init == (* Global variables *)
        /\ tail = [q \in Queues |-> Nobody]
        /\ next = [t \in Threads |-> Nobody]
        /\ wait = [t \in Threads |-> Nobody]
        (* Process thread *)
        /\ queue \in [Threads -> Queues]
        /\ before = [self \in Threads |-> Nobody]
        /\ after = [self \in Threads |-> Nobody]
        /\ pc = [self \in ProcSet |-> "arrive"]

arrive(self) == /\ pc[self] = "arrive"
                /\ \E q \in Queues:
                     queue' = [queue EXCEPT ![self] = q]
                /\ next' = [next EXCEPT ![self] = Nobody]
                /\ pc' = [pc EXCEPT ![self] = "arrive_swap"]
                /\ UNCHANGED << tail, wait, before, after >>

arrive_swap(self) == /\ pc[self] = "arrive_swap"
                     /\ before' = [before EXCEPT ![self] = tail[queue[self]]]
                     /\ tail' = [tail EXCEPT ![queue[self]] = self]
                     /\ IF before'[self] = Nobody
                           THEN /\ pc' = [pc EXCEPT ![self] = "head"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "link_wait"]
                     /\ UNCHANGED << next, wait, queue, after >>

link_wait(self) == /\ pc[self] = "link_wait"
                   /\ wait' = [wait EXCEPT ![self] = before[self]]
                   /\ pc' = [pc EXCEPT ![self] = "link_next"]
                   /\ UNCHANGED << tail, next, queue, before, after >>

link_next(self) == /\ pc[self] = "link_next"
                   /\ next' = [next EXCEPT ![before[self]] = self]
                   /\ before' = [before EXCEPT ![self] = Nobody]
                   /\ pc' = [pc EXCEPT ![self] = "waiting"]
                   /\ UNCHANGED << tail, wait, queue, after >>

waiting(self) == /\ pc[self] = "waiting"
                 /\ \/ /\ wait[self] = Ours
                       /\ pc' = [pc EXCEPT ![self] = "head"]
                    \/ /\ TRUE
                       /\ pc' = [pc EXCEPT ![self] = "unlink_look"]
                 /\ UNCHANGED << tail, next, wait, queue, before, after >>

unlink_look(self) == /\ pc[self] = "unlink_look"
                     /\ IF wait[self] # Ours
                           THEN /\ before' = [before EXCEPT ![self] = wait[self]]
                                /\ pc' = [pc EXCEPT ![self] = "unlink_exchange"]
                           ELSE /\ IF Broken = "ours_not_seen"
                                      THEN /\ pc' = [pc EXCEPT ![self] = "unlink_look"]
                                      ELSE /\ pc' = [pc EXCEPT ![self] = "head"]
                                /\ UNCHANGED before
                     /\ UNCHANGED << tail, next, wait, queue, after >>

unlink_exchange(self) == /\ pc[self] = "unlink_exchange"
                         /\ IF next[before[self]] = self \/ Broken = "unlinked_by_store"
                               THEN /\ next' = [next EXCEPT ![before[self]] = Nobody]
                                    /\ pc' = [pc EXCEPT ![self] = "detach"]
                                    /\ UNCHANGED before
                               ELSE /\ before' = [before EXCEPT ![self] = Nobody]
                                    /\ pc' = [pc EXCEPT ![self] = "unlink_look"]
                                    /\ next' = next
                         /\ UNCHANGED << tail, wait, queue, after >>

detach(self) == /\ pc[self] = "detach"
                /\ \/ /\ tail[queue[self]] = self
                      /\ tail' = [tail EXCEPT ![queue[self]] = before[self]]
                      /\ before' = [before EXCEPT ![self] = Nobody]
                      /\ wait' = [wait EXCEPT ![self] = Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "arrive"]
                      /\ UNCHANGED <<next, after>>
                   \/ /\ next[self] # Nobody
                      /\ after' = [after EXCEPT ![self] = next[self]]
                      /\ next' = [next EXCEPT ![self] = IF Broken = "link_read" THEN after'[self] ELSE Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "relink_wait"]
                      /\ UNCHANGED <<tail, wait, before>>
                   \/ /\ Broken = "link_not_awaited" /\ tail[queue[self]] # self /\ next[self] = Nobody
                      /\ before' = [before EXCEPT ![self] = Nobody]
                      /\ wait' = [wait EXCEPT ![self] = Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "arrive"]
                      /\ UNCHANGED <<tail, next, after>>
                /\ queue' = queue

relink_wait(self) == /\ pc[self] = "relink_wait"
                     /\ IF Broken = "linked_before_wait"
                           THEN /\ next' = [next EXCEPT ![before[self]] = after[self]]
                                /\ wait' = wait
                           ELSE /\ IF Broken # "wait_not_written"
                                      THEN /\ wait' = [wait EXCEPT ![after[self]] = before[self]]
                                      ELSE /\ TRUE
                                           /\ wait' = wait
                                /\ next' = next
                     /\ pc' = [pc EXCEPT ![self] = "relink_next"]
                     /\ UNCHANGED << tail, queue, before, after >>

relink_next(self) == /\ pc[self] = "relink_next"
                     /\ IF Broken = "linked_before_wait"
                           THEN /\ wait' = [wait EXCEPT ![after[self]] = before[self],
                                                        ![self] = Nobody]
                                /\ next' = next
                           ELSE /\ next' = [next EXCEPT ![before[self]] = after[self]]
                                /\ wait' = [wait EXCEPT ![self] = Nobody]
                     /\ /\ after' = [after EXCEPT ![self] = Nobody]
                        /\ before' = [before EXCEPT ![self] = Nobody]
                     /\ pc' = [pc EXCEPT ![self] = "arrive"]
                     /\ UNCHANGED << tail, queue >>

head(self) == /\ pc[self] = "head"
              /\ wait' = [wait EXCEPT ![self] = Nobody]
              /\ before' = [before EXCEPT ![self] = Nobody]
              /\ pc' = [pc EXCEPT ![self] = "unlock"]
              /\ UNCHANGED << tail, next, queue, after >>

unlock(self) == /\ pc[self] = "unlock"
                /\ \/ /\ tail[queue[self]] = self
                      /\ tail' = [tail EXCEPT ![queue[self]] = Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "arrive"]
                      /\ UNCHANGED <<next, after>>
                   \/ /\ next[self] # Nobody
                      /\ after' = [after EXCEPT ![self] = next[self]]
                      /\ next' = [next EXCEPT ![self] = IF Broken = "link_read_by_head" THEN after'[self] ELSE Nobody]
                      /\ pc' = [pc EXCEPT ![self] = "unlock_ours"]
                      /\ tail' = tail
                   \/ /\ Broken = "head_link_not_awaited" /\ tail[queue[self]] # self /\ next[self] = Nobody
                      /\ pc' = [pc EXCEPT ![self] = "arrive"]
                      /\ UNCHANGED <<tail, next, after>>
                /\ UNCHANGED << wait, queue, before >>

unlock_ours(self) == /\ pc[self] = "unlock_ours"
                     /\ wait' = [wait EXCEPT ![after[self]] = Ours]
                     /\ after' = [after EXCEPT ![self] = Nobody]
                     /\ pc' = [pc EXCEPT ![self] = "arrive"]
                     /\ UNCHANGED << tail, next, queue, before >>

thread(self) == arrive(self) \/ arrive_swap(self) \/ link_wait(self)
                   \/ link_next(self) \/ waiting(self) \/ unlink_look(self)
                   \/ unlink_exchange(self) \/ detach(self)
                   \/ relink_wait(self) \/ relink_next(self) \/ head(self)
                   \/ unlock(self) \/ unlock_ours(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Threads: thread(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-8de1132bcb8150fe260afe0956c45de4

-------------------------------------------------------------------------------
(* Safety *)

AtMostOne(P(_)) == \A t, u \in Threads : P(t) /\ P(u) => t = u

\* The queue is ours.
IsHead(t) == pc[t] \in {"head", "unlock", "unlock_ours"} \/ wait[t] = Ours

\* In the queue: from the exchange of the tail to the last step of leaving or unlocking.
Claimed(t) == pc[t] \notin {"arrive", "arrive_swap"}

InQueue(t, q) == Claimed(t) /\ queue[t] = q

TypeOK ==
    /\ tail \in [Queues -> Threads \union {Nobody}]
    /\ next \in [Threads -> Threads \union {Nobody}]
    /\ wait \in [Threads -> Threads \union {Nobody, Ours}]
    /\ before \in [Threads -> Threads \union {Nobody}] /\ after \in [Threads -> Threads \union {Nobody}]

OneHead == \A q \in Queues : AtMostOne(LAMBDA t : IsHead(t) /\ queue[t] = q)

\* Who is named behind somebody stands behind it, and nobody is named twice.
Q1_OnceInTheQueue ==
    /\ \A t \in Threads :
        next[t] # Nobody => wait[next[t]] = t /\ queue[next[t]] = queue[t]
    /\ \A t, u \in Threads : next[t] = next[u] /\ next[t] # Nobody => t = u

\* Who has taken the link, and nobody else, writes to the node that it named.
Q2_OneWriter ==
    \A t, u \in Threads : after[t] = after[u] /\ after[t] # Nobody => t = u /\ next[u] # after[t]

\* Who comes to C, or hands over, finds its neighbours still there.
Q3_NeighboursStay ==
    \A t \in Threads :
        /\ pc[t] \in {"detach", "relink_wait", "relink_next"} => before[t] # Nobody /\ InQueue(before[t], queue[t])
        /\ after[t] # Nobody => InQueue(after[t], queue[t])

\* Nobody reaches a node whose claim has ended, but with a look at `wait` from before that.
Q4_NobodyLeftBehind ==
    /\ \A q \in Queues : tail[q] # Nobody => InQueue(tail[q], q)
    /\ \A t \in Threads :
        /\ next[t] # Nobody => Claimed(t) /\ Claimed(next[t])
        /\ wait[t] \in Threads => InQueue(wait[t], queue[t])

\* ... and that one changes nothing: it takes itself from its predecessor alone.
Q4_OnlyThePredecessor ==
    [][\A t \in Threads :
        pc[t] = "unlink_exchange" /\ pc'[t] = "detach" => next[before[t]] = t /\ wait[t] = before[t]]_vars

-------------------------------------------------------------------------------
(* Progress *)

GivesUp(t) == waiting(t) /\ wait[t] # Ours

\* Who can go on does. Nothing makes a thread arrive, or give up.
WhoCanGoesOn ==
    /\ Spec
    /\ \A t \in Threads : WF_vars(thread(t) /\ pc[t] # "arrive" /\ ~GivesUp(t))

\* Who waits for a link that comes and goes, since others arrive behind it and leave again, sees it once.
FairSpec ==
    /\ WhoCanGoesOn
    /\ \A t \in Threads : SF_vars(detach(t) \/ unlock(t))

Leaves(t) == pc[t] \in {"unlink_look", "unlink_exchange", "detach", "relink_wait", "relink_next"}

\* Whoever waits becomes the head, unless it leaves.
Progress == pc[Me] = "waiting" ~> pc[Me] = "head" \/ Leaves(Me)

\* Whoever leaves has left in the end, or is the head.
LeavesInTheEnd == Leaves(Me) ~> pc[Me] \in {"arrive", "head"}

Symmetry == Permutations(Threads) \union Permutations(Queues)

===============================================================================
