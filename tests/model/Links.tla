-------------------------------- MODULE Links --------------------------------
(* A queue manager whose topics are linked to a tree, and instances of run that take over from each other.

   Programs put publications 1..Legacy on the stream's queue, native programs publish 101..100+Native in the tree. The
   processor has each one delivered here, and those of programs put on the outgoing queue, in one unit of work. One
   pump sends the outgoing queue to the tree, and takes off what the tree has answered; the other puts native
   publications as commands, and accepts them after that (commands/links/engine/link.py).

   Kind is how far the tree can be believed (docs/live-brokers.md, Order of commits):
     session    it remembers what was not accepted, and knows nothing of what was sent before: MQTT at QoS 1, IBM MQ's
                tree with embedded queues
     numbered   it drops what it has already, and the bridge's position is in the unit of work: NATS, Kafka
     unit       queues and tree are in one unit of work: IBM MQ has both

   A unit of work begins only if the database still has the epoch of the instance, and no epoch begins while one is
   open; an instance that was stopped within one has it backed out by the next (commands/running/tenure.py). *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS Kind, Instances, Legacy, Native, Window, MaxFaults, LeftOut  \* LeftOut: a rule that is not kept, to see that it is needed

VARIABLES
    input, out, sub, position, epoch,      \* the database
    lock, unit,                            \* its sessions: who has the processor's lock, who has a unit of work open
    held, taken, answered, got, accepts,   \* in the memory of an instance: its epoch, and what its pumps have in hand
    conn, reader, wire, acks,              \* the tree's connection: whose it is, how far it has read, what is under way
    tree, native, accepted,                \* the tree: what natives got, how much they published and is accepted
    put, faults, stale                     \* programs; faults so far; whether an old epoch has committed anything

database == <<input, out, sub, position, epoch>>
memory == <<held, taken, answered, got, accepts>>
link == <<conn, reader, wire, acks>>
vars == <<database, lock, unit, memory, link, tree, native, accepted, put, faults, stale>>

None == "none"
NoUnit == [by |-> None, does |-> None]
Min(a, b) == IF a < b THEN a ELSE b
First(s, n) == SubSeq(s, 1, Min(n, Len(s)))
Range(s) == {s[k] : k \in DOMAIN s}
Without(s, gone) == SelectSeq(s, LAMBDA n : n \notin gone)
IsNative(n) == n > 100
Natives(from, to) == [k \in 1..(to - from) |-> 100 + from + k]

Start(legacy, natives) ==  \* so much is there already
    /\ put = legacy /\ input = [k \in 1..legacy |-> k] /\ native = natives
    /\ out = <<>> /\ sub = <<>> /\ position = 0 /\ epoch = 0
    /\ lock = None /\ unit = NoUnit
    /\ held = [i \in Instances |-> 0] /\ taken = [i \in Instances |-> <<>>] /\ answered = [i \in Instances |-> {}]
    /\ got = [i \in Instances |-> <<>>] /\ accepts = [i \in Instances |-> FALSE]
    /\ conn = None /\ reader = 0 /\ wire = <<>> /\ acks = {}
    /\ tree = <<>> /\ accepted = 0 /\ faults = 0 /\ stale = FALSE
Init == Start(0, 0)

----
(* Programs, here and in the tree *)

Put ==
    /\ put < Legacy /\ unit = NoUnit
    /\ put' = put + 1 /\ input' = Append(input, put + 1)
    /\ UNCHANGED <<out, sub, position, epoch, lock, unit, memory, link, tree, native, accepted, faults, stale>>

Publish ==
    /\ native < Native
    /\ native' = native + 1
    /\ UNCHANGED <<database, lock, unit, memory, link, tree, accepted, put, faults, stale>>

----
(* Who is active *)

Lock(i) ==
    /\ lock = None /\ held[i] \in {0, epoch}
    /\ lock' = i
    /\ UNCHANGED <<database, unit, memory, link, tree, native, accepted, put, faults, stale>>

BackOutStopped(i) ==
    /\ lock = i /\ held[i] = 0 /\ unit.by \notin {None, i}
    /\ unit' = NoUnit
    /\ UNCHANGED <<database, lock, memory, link, tree, native, accepted, put, faults, stale>>

BeginEpoch(i) ==
    /\ lock = i /\ held[i] = 0 /\ (unit = NoUnit \/ LeftOut = "one unit of work")
    /\ epoch' = epoch + 1 /\ held' = [held EXCEPT ![i] = epoch + 1]
    /\ UNCHANGED <<input, out, sub, position, lock, unit, taken, answered, got, accepts, link, tree, native, accepted,
                   put, faults, stale>>

Forget(i) ==
    /\ held' = [held EXCEPT ![i] = 0] /\ taken' = [taken EXCEPT ![i] = <<>>] /\ answered' = [answered EXCEPT ![i] = {}]
    /\ got' = [got EXCEPT ![i] = <<>>] /\ accepts' = [accepts EXCEPT ![i] = FALSE]

Break == wire' = <<>> /\ acks' = {}

Leave(i) ==  \* all of its sessions end
    /\ Forget(i)
    /\ lock' = (IF lock = i THEN None ELSE lock) /\ unit' = (IF unit.by = i THEN NoUnit ELSE unit)
    /\ IF conn = i THEN conn' = None /\ Break ELSE UNCHANGED <<conn, wire, acks>>
    /\ UNCHANGED <<database, reader, tree, native, accepted, put, stale>>

Superseded(i) == held[i] \notin {0, epoch} /\ Leave(i) /\ UNCHANGED faults

Fault == faults < MaxFaults /\ faults' = faults + 1

Kill(i) == held[i] > 0 /\ Fault /\ Leave(i)

LoseLock ==  \* stopped for longer than the lease, or the server was away: the memory stays, and may go on
    /\ lock # None /\ Fault
    /\ lock' = None
    /\ UNCHANGED <<database, unit, memory, link, tree, native, accepted, put, stale>>

Disconnect ==
    /\ conn # None /\ Fault
    /\ conn' = None /\ Break
    /\ UNCHANGED <<database, lock, unit, memory, reader, tree, native, accepted, put, stale>>

(* The tree ends an earlier connection with the same name; what was in hand comes again. A thread that reads a position
   from the database, or whose connection has the unit of work, does not connect within one. *)
Connect(i) ==
    /\ held[i] > 0 /\ conn # i /\ (Kind = "session" \/ unit.by # i \/ unit.does = "process")
    /\ conn' = i /\ Break
    /\ reader' = (IF Kind = "numbered" THEN position ELSE accepted)
    /\ IF unit = [by |-> i, does |-> "put"] THEN UNCHANGED <<got, accepts>>
       ELSE got' = [got EXCEPT ![i] = <<>>] /\ accepts' = [accepts EXCEPT ![i] = FALSE]
    /\ UNCHANGED <<database, lock, unit, held, taken, answered, tree, native, accepted, put, stale>>

----
(* The pumps, outside units of work *)

Take(i) ==
    /\ held[i] > 0 /\ taken[i] = <<>> /\ out # <<>>
    /\ taken' = [taken EXCEPT ![i] = First(out, Window)]
    /\ UNCHANGED <<database, lock, unit, held, answered, got, accepts, link, tree, native, accepted, put, faults, stale>>

Send(i) ==  \* in order, and what was not answered again after each connection
    /\ conn = i /\ Kind # "unit"
    /\ LET open == Without(taken[i], answered[i] \cup Range(wire) \cup acks)
       IN open # <<>> /\ wire' = Append(wire, Head(open))
    /\ UNCHANGED <<database, lock, unit, memory, conn, reader, acks, tree, native, accepted, put, faults, stale>>

TreeTakes ==
    /\ wire # <<>>
    /\ tree' = (IF Kind = "numbered" /\ Head(wire) \in Range(tree) THEN tree ELSE Append(tree, Head(wire)))
    /\ wire' = Tail(wire) /\ acks' = acks \cup {Head(wire)}
    /\ UNCHANGED <<database, lock, unit, memory, conn, reader, native, accepted, put, faults, stale>>

Answer(i) ==
    /\ conn = i /\ acks # {}
    /\ answered' = [answered EXCEPT ![i] = @ \cup acks] /\ acks' = {}
    /\ UNCHANGED <<database, lock, unit, held, taken, got, accepts, conn, reader, wire, tree, native, accepted, put,
                   faults, stale>>

Receive(i) ==
    /\ conn = i /\ got[i] = <<>> /\ reader < native
    /\ LET to == Min(native, reader + Window) IN got' = [got EXCEPT ![i] = Natives(reader, to)] /\ reader' = to
    /\ UNCHANGED <<database, lock, unit, held, taken, answered, accepts, conn, wire, acks, tree, native, accepted, put,
                   faults, stale>>

Accept(i) ==
    /\ accepts[i] /\ conn = i
    /\ accepted' = got[i][Len(got[i])] - 100
    /\ got' = [got EXCEPT ![i] = <<>>] /\ accepts' = [accepts EXCEPT ![i] = FALSE]
    /\ UNCHANGED <<database, lock, unit, held, taken, answered, link, tree, native, put, faults, stale>>

----
(* Units of work *)

Ready(i, does) ==
    CASE does = "process" -> input # <<>>
      [] does = "done" -> taken[i] # <<>> /\ (Kind = "unit" \/ Range(taken[i]) \subseteq answered[i])
      [] does = "put" -> got[i] # <<>> /\ ~accepts[i]

Begin(i, does) ==
    /\ unit = NoUnit /\ held[i] > 0 /\ (held[i] = epoch \/ LeftOut = "epoch") /\ Ready(i, does)
    /\ Kind = "unit" /\ does # "process" => conn = i
    /\ unit' = [by |-> i, does |-> does]
    /\ UNCHANGED <<database, lock, memory, link, tree, native, accepted, put, faults, stale>>

Process(i) ==
    /\ \E k \in 1..Len(input) :
        /\ input' = SubSeq(input, k + 1, Len(input)) /\ sub' = sub \o First(input, k)
        /\ out' = out \o SelectSeq(First(input, k), LAMBDA n : ~IsNative(n))
    /\ UNCHANGED <<position, taken, answered, got, accepts, tree, accepted>>

Done(i) ==
    /\ out' = Without(out, Range(taken[i]))
    /\ taken' = [taken EXCEPT ![i] = <<>>] /\ answered' = [answered EXCEPT ![i] = {}]
    /\ tree' = (IF Kind = "unit" THEN tree \o taken[i] ELSE tree)
    /\ UNCHANGED <<input, sub, position, got, accepts, accepted>>

PutNative(i) ==
    /\ input' = input \o got[i]
    /\ position' = (IF Kind = "numbered" /\ LeftOut # "position" THEN got[i][Len(got[i])] - 100 ELSE position)
    /\ IF Kind = "unit"
       THEN /\ accepted' = got[i][Len(got[i])] - 100
            /\ got' = [got EXCEPT ![i] = <<>>] /\ UNCHANGED accepts
       ELSE accepts' = [accepts EXCEPT ![i] = TRUE] /\ UNCHANGED <<got, accepted>>
    /\ UNCHANGED <<out, sub, taken, answered, tree>>

Commit(i) ==
    /\ unit.by = i
    /\ Kind = "unit" /\ unit.does # "process" => conn = i  \* the unit of work is the tree's
    /\ CASE unit.does = "process" -> Process(i) [] unit.does = "done" -> Done(i) [] unit.does = "put" -> PutNative(i)
    /\ unit' = NoUnit /\ stale' = (stale \/ held[i] # epoch)
    /\ UNCHANGED <<epoch, lock, held, link, native, put, faults>>

BackOut(i) ==  \* the tree's connection has gone, and the unit of work with it
    /\ unit.by = i /\ Kind = "unit" /\ unit.does # "process" /\ conn # i
    /\ unit' = NoUnit /\ got' = [got EXCEPT ![i] = <<>>] /\ taken' = [taken EXCEPT ![i] = <<>>]
    /\ UNCHANGED <<database, lock, held, answered, accepts, link, tree, native, accepted, put, faults, stale>>

Works(i) ==
    \/ Lock(i) \/ BackOutStopped(i) \/ BeginEpoch(i) \/ Superseded(i) \/ Take(i) \/ Send(i) \/ Answer(i)
    \/ Receive(i) \/ Accept(i) \/ Commit(i) \/ BackOut(i)
    \/ (lock = i /\ Connect(i) /\ UNCHANGED faults)
    \/ \E does \in {"process", "done", "put"} : Begin(i, does)
Faults == LoseLock \/ Disconnect \/ \E i \in Instances : Kill(i) \/ (Fault /\ lock # i /\ Connect(i))
Next == Put \/ Publish \/ TreeTakes \/ Faults \/ \E i \in Instances : Works(i)
Spec == Start(Legacy, Native) /\ [][Next]_vars
Alike == Permutations(Instances)

----
(* What holds *)

FirstOf(s) ==  \* each number where it came first
    LET F[k \in 0..Len(s)] == IF k = 0 THEN <<>> ELSE IF s[k] \in Range(F[k - 1]) THEN F[k - 1] ELSE Append(F[k - 1], s[k])
    IN F[Len(s)]
Ascends(s) == \A a, b \in DOMAIN s : a < b => s[a] < s[b]
Twice(s) == Len(s) # Cardinality(Range(s))
Here == sub \o input
OfPrograms(s) == SelectSeq(s, LAMBDA n : ~IsNative(n))
OfNatives(s) == SelectSeq(s, IsNative)

OneProcessor == unit # NoUnit => held[unit.by] = epoch
NoOldCommit == ~stale
NothingLostHere == Range(OfPrograms(Here)) = 1..put
NothingLostToTree == Range(OfPrograms(input)) \cup Range(out) \cup Range(tree) = 1..put
NothingLostFromTree ==
    LET kept == IF Kind = "numbered" THEN position ELSE accepted
    IN Range(Natives(0, kept)) \subseteq Range(Here)
OnceHere == ~Twice(OfPrograms(Here))
OnceToTree == Kind # "session" => ~Twice(tree)
OnceFromTree == Kind # "session" => ~Twice(OfNatives(Here))
InOrder == Ascends(OfPrograms(Here)) /\ Ascends(FirstOf(tree)) /\ Ascends(FirstOf(OfNatives(Here))) /\ Ascends(out)
Promises ==
    /\ OneProcessor /\ NoOldCommit /\ NothingLostHere /\ NothingLostToTree /\ NothingLostFromTree
    /\ OnceHere /\ OnceToTree /\ OnceFromTree /\ InOrder

(* All comes to where it goes, if the faults end and the instances go on. The database gives the one who waits for the
   end of a unit of work, to begin an epoch, its turn. *)
Fair ==
    /\ Spec /\ WF_vars(Put) /\ WF_vars(Publish) /\ WF_vars(TreeTakes)
    /\ \A i \in Instances : WF_vars(Works(i)) /\ WF_vars(Superseded(i)) /\ SF_vars(BeginEpoch(i))
AllCame == Range(tree) = 1..Legacy /\ Range(sub) = 1..Legacy \cup {100 + k : k \in 1..Native} /\ out = <<>>
Arrives == <>[]AllCame
=============================================================================
