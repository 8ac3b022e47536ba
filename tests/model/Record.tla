-------------------------------- MODULE Record --------------------------------
(* The bridge with the queues of IBM MQ: messages are there, its state is in a database here, and no commit has both.

   Commands 1..Commands are on the input queue; each gives one put, and the odd ones change the state. A unit of work
   that changes the state, or what is owed to a queue, puts a record in the place of the one before. MQCMIT decides for
   commands, puts and record together; then the database follows (commands/links/ibmmq/undelivered.py). A put that its queue
   refuses is kept on the queue of what is owed, and later ones for that queue go behind it (undelivered.py); how many
   are there the bridge has in memory, and reads it for each connection after the record says that the last unit of work
   is decided. *)
EXTENDS Naturals, Sequences

CONSTANTS Commands, MaxFaults, MaxRefusals, LeftOut  \* LeftOut: a rule that is not kept, to see that it is needed

VARIABLES
    input, queue, owed, record,    \* IBM MQ: two queues, what is owed, the record with number and change
    applied, log,                  \* the database: the last record that it has, and what the records changed
    pc, now, owes,                 \* the bridge: what it does, the unit of work (NoUnit without), what it believes is owed
    doubt,                         \* the unit of work of a broken connection that IBM MQ has not decided yet, or NoUnit
    faults, refusals

mq == <<input, queue, owed, record>>
database == <<applied, log>>
vars == <<mq, database, pc, now, owes, doubt, faults, refusals>>

(* get: commands taken; put, keep: where its publications go; change: of the state; number: of its record, 0 for none *)
NoUnit == [get |-> <<>>, put |-> <<>>, keep |-> <<>>, free |-> 0, change |-> <<>>, number |-> 0]

Init ==
    /\ input = [k \in 1..Commands |-> k] /\ queue = <<>> /\ owed = <<>> /\ record = [number |-> 0, change |-> <<>>]
    /\ applied = 0 /\ log = <<>>
    /\ pc = "down" /\ now = NoUnit /\ owes = 0 /\ doubt = NoUnit
    /\ faults = 0 /\ refusals = 0

Visible == SelectSeq(input, LAMBDA k : <<k>> # doubt.get)
Changes(k) == IF k % 2 = 1 THEN <<k>> ELSE <<>>
Numbered(unit) ==
    [unit EXCEPT !.number = IF (unit.change = <<>> /\ unit.keep = <<>> /\ unit.free = 0) \/ LeftOut = "record" THEN 0 ELSE applied + 1]

----
(* What a unit of work is to do: a command with its put, or what is owed again *)

Work(refused) ==
    /\ pc = "idle" /\ Visible # <<>>
    /\ refused => refusals < MaxRefusals /\ owes = 0
    /\ refusals' = (IF refused THEN refusals + 1 ELSE refusals)
    /\ LET k == Head(Visible)
           kept == refused \/ owes > 0
       IN now' = Numbered([NoUnit EXCEPT !.get = <<k>>, !.put = IF kept THEN <<>> ELSE <<k>>,
                                         !.keep = IF kept THEN <<k>> ELSE <<>>, !.change = Changes(k)])
    /\ pc' = "unit"
    /\ UNCHANGED <<mq, database, owes, doubt, faults>>

Redeliver ==
    /\ pc = "idle" /\ owes > 0
    /\ now' = Numbered([NoUnit EXCEPT !.put = owed, !.free = Len(owed)])
    /\ pc' = "unit"
    /\ UNCHANGED <<mq, database, owes, doubt, faults, refusals>>

Committed(unit) ==
    /\ input' = SelectSeq(input, LAMBDA k : <<k>> # unit.get)
    /\ queue' = queue \o unit.put
    /\ owed' = SubSeq(owed, unit.free + 1, Len(owed)) \o unit.keep
    /\ record' = (IF unit.number = 0 THEN record ELSE [number |-> unit.number, change |-> unit.change])

Commit ==  \* MQCMIT succeeds, and the bridge learns it
    /\ pc = "unit" /\ Committed(now)
    /\ pc' = "follow" /\ owes' = owes + Len(now.keep) - now.free
    /\ UNCHANGED <<database, now, doubt, faults, refusals>>

Follow ==  \* the database follows the record
    /\ pc = "follow"
    /\ IF now.number = 0 THEN UNCHANGED database ELSE applied' = now.number /\ log' = log \o now.change
    /\ pc' = "idle" /\ now' = NoUnit
    /\ UNCHANGED <<mq, owes, doubt, faults, refusals>>

----
(* Faults: the bridge ends, or its connection does. In MQCMIT the outcome is then unknown, and may be late. *)

Fault == faults < MaxFaults /\ faults' = faults + 1 /\ pc' = "down" /\ now' = NoUnit /\ owes' = 0

EndBetween ==  \* an open unit of work is backed out, or was committed
    /\ pc # "down" /\ Fault
    /\ UNCHANGED <<mq, database, doubt, refusals>>

EndInCommit ==
    /\ pc = "unit" /\ Fault
    /\ doubt' = now
    /\ UNCHANGED <<mq, database, refusals>>

Decide ==
    /\ doubt # NoUnit
    /\ doubt' = NoUnit
    /\ Committed(doubt) \/ UNCHANGED mq
    /\ UNCHANGED <<database, pc, now, owes, faults, refusals>>

(* The bridge opens the record's queue exclusively, so it has no connection before IBM MQ has ended the one before. *)
Start ==
    /\ pc = "down" /\ (doubt = NoUnit \/ LeftOut = "exclusive")
    /\ record.number \in {applied, applied + 1}
    /\ IF record.number = applied THEN UNCHANGED database ELSE applied' = record.number /\ log' = log \o record.change
    /\ pc' = "idle" /\ owes' = (IF LeftOut = "read owed" THEN 0 ELSE Len(owed))
    /\ UNCHANGED <<mq, now, doubt, faults, refusals>>

Next == (\E refused \in BOOLEAN : Work(refused)) \/ Redeliver \/ Commit \/ Follow \/ EndBetween \/ EndInCommit
        \/ Decide \/ Start
Spec == Init /\ [][Next]_vars
Fair == Spec /\ WF_vars(Next)

----
Ascends(s) == \A a, b \in DOMAIN s : a < b => s[a] < s[b]
Done == Commands - Len(input)
Odd(n) == [k \in 1..((n + 1) \div 2) |-> 2 * k - 1]
Pending == IF record.number = applied THEN <<>> ELSE record.change

AllOnce == queue \o owed = [k \in 1..Done |-> k]      \* nothing lost, nothing twice, in order
StateFollows == log \o Pending = Odd(Done)            \* the database has, or will have, what the commands changed
NeverStuck == record.number \in {applied, applied + 1}
KnowsWhatIsOwed == pc = "idle" => owes = Len(owed)
Promises == AllOnce /\ StateFollows /\ NeverStuck /\ KnowsWhatIsOwed
Ends == <>[](input = <<>> /\ owed = <<>> /\ log = Odd(Commands))
=============================================================================
