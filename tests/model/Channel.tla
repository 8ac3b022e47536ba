-------------------------------- MODULE Channel --------------------------------
(* What a queue manager (here) tells a neighbour (there) of its subscription to a topic, over the channel between their
   two databases: proxy subscriptions, over crashes, other channels that take over, and databases put back from a backup.

   A flow waits on the transmission queue with what here wants from now on. A channel puts a batch there with the next
   sequence number, and then takes it off here: two commits (commands/links/channels.py). There remembers which
   flows have arrived that may still be on the transmission queue, and which channel may bring any. If the numbers say
   that the two remember different pasts, here tells everything again. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Channels, Changes, Window, MaxFaults, MaxRestores, Highest, LeftOut

VARIABLES
    here,       \* its database: wants, xmit, sent, refresh, active (the channel whose epoch it is)
    there,      \* its database: proxy, received, arrived, claim, log (the flows that came, for what is promised of them)
    channel,    \* in the memory of each: open, number, gone, batch, and whether the batch is there
    backups,    \* of here and there
    flows, changes, faults, restores

vars == <<here, there, channel, backups, flows, changes, faults, restores>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Range(s) == {s[k] : k \in DOMAIN s}
Ids(s) == {s[k].id : k \in DOMAIN s}
Closed == [open |-> FALSE, number |-> 0, gone |-> {}, batch |-> <<>>, is_there |-> FALSE]

Init ==
    /\ here = [wants |-> FALSE, xmit |-> <<>>, sent |-> 0, refresh |-> FALSE, active |-> "none"]
    /\ there = [proxy |-> FALSE, received |-> 0, arrived |-> {}, claim |-> "none", log |-> <<>>]
    /\ channel = [c \in Channels |-> Closed]
    /\ backups = [here |-> here, there |-> there]
    /\ flows = 0 /\ changes = 0 /\ faults = 0 /\ restores = 0

----
(* The processor here: the difference between what is wanted and what was told, in the unit of work that changes it *)

Told(h) == [h EXCEPT !.refresh = FALSE, !.xmit = Append(h.xmit, [id |-> flows + 1, wants |-> h.wants])]

Change ==  \* a program subscribes or unsubscribes
    /\ changes < Changes
    /\ here' = Told([here EXCEPT !.wants = ~@])
    /\ flows' = flows + 1 /\ changes' = changes + 1
    /\ UNCHANGED <<there, channel, backups, faults, restores>>

Refresh ==
    /\ here.refresh
    /\ here' = Told(here) /\ flows' = flows + 1
    /\ UNCHANGED <<there, channel, backups, changes, faults, restores>>

----
(* A channel *)

State(h, t) ==
    LET gone == t.arrived \ Ids(h.xmit)
    IN IF t.received = h.sent \/ (t.received = h.sent + 1 /\ gone = {}) THEN "same"
       ELSE IF t.received < h.sent THEN "receiver behind" ELSE "sender behind"

Open(c) ==
    /\ ~channel[c].open
    /\ there' = [there EXCEPT !.claim = c]
    /\ channel' = [channel EXCEPT ![c] =
                    [Closed EXCEPT !.open = TRUE, !.number = there.received, !.gone = there.arrived \ Ids(here.xmit)]]
    /\ here' = [here EXCEPT !.active = c, !.sent = IF State(here, there) = "same" THEN there.received ELSE @]
    /\ UNCHANGED <<backups, flows, changes, faults, restores>>

(* Two commits: first there, then here. A crash between the two must not look like one after a batch. *)
Unlike(c) == channel[c].open /\ channel[c].batch = <<>> /\ there.claim = c /\ State(here, there) # "same"
SynchroniseThere(c) ==
    /\ Unlike(c) /\ ~channel[c].is_there
    /\ LET number == Max(here.sent, there.received) + 2
       IN there' = [there EXCEPT !.received = number] /\ channel' = [channel EXCEPT ![c].number = number, ![c].is_there = TRUE]
    /\ UNCHANGED <<here, backups, flows, changes, faults, restores>>
SynchroniseHere(c) ==
    /\ here.active = c /\ channel[c].is_there /\ channel[c].batch = <<>>
    /\ here' = [here EXCEPT !.sent = channel[c].number, !.refresh = (LeftOut # "refresh")]
    /\ channel' = [channel EXCEPT ![c].is_there = FALSE]
    /\ UNCHANGED <<there, backups, flows, changes, faults, restores>>

Read(c) ==
    /\ channel[c].open /\ channel[c].batch = <<>> /\ ~channel[c].is_there /\ here.xmit # <<>> /\ ~Unlike(c)
    /\ channel' = [channel EXCEPT ![c].batch = SubSeq(here.xmit, 1, Min(Window, Len(here.xmit)))]
    /\ UNCHANGED <<here, there, backups, flows, changes, faults, restores>>

Bring(c) ==
    /\ channel[c].open /\ channel[c].batch # <<>> /\ ~channel[c].is_there
    /\ LeftOut # "claim" => there.claim = c
    /\ LeftOut # "claim" => there.received = channel[c].number
    /\ LET batch == channel[c].batch
           new == SelectSeq(batch, LAMBDA f : f.id \notin there.arrived \/ LeftOut = "arrived")
       IN there' = [there EXCEPT !.log = @ \o [k \in DOMAIN new |-> new[k].id],
                                 !.proxy = IF new = <<>> THEN @ ELSE new[Len(new)].wants,
                                 !.arrived = (@ \ channel[c].gone) \cup Ids(batch), !.received = channel[c].number + 1]
    /\ channel' = [channel EXCEPT ![c].is_there = TRUE, ![c].number = @ + 1]
    /\ UNCHANGED <<here, backups, flows, changes, faults, restores>>

TakeOff(c) ==
    /\ here.active = c \/ LeftOut = "epoch"
    /\ channel[c].batch # <<>> /\ channel[c].is_there
    /\ here' = [here EXCEPT !.xmit = SelectSeq(@, LAMBDA f : f.id \notin Ids(channel[c].batch)), !.sent = channel[c].number]
    /\ channel' = [channel EXCEPT ![c].is_there = FALSE, ![c].batch = <<>>, ![c].gone = Ids(channel[c].batch)]
    /\ UNCHANGED <<there, backups, flows, changes, faults, restores>>

Close(c) ==  \* it sees that it is not the one that may bring, or not the database that it left
    /\ channel[c].open /\ (here.active # c \/ there.claim # c \/ there.received # channel[c].number)
    /\ channel' = [channel EXCEPT ![c] = Closed]
    /\ UNCHANGED <<here, there, backups, flows, changes, faults, restores>>

Crash(c) ==
    /\ channel[c].open /\ faults < MaxFaults
    /\ channel' = [channel EXCEPT ![c] = Closed] /\ faults' = faults + 1
    /\ UNCHANGED <<here, there, backups, flows, changes, restores>>

----
(* Backups are made at any time. While one is put back, run of the queue manager is stopped (docs/networks.md). A channel
   that was held up since before another took over must have ended too, if LeftOut is not "ended": its batch could else
   be brought to the database put back, which may remember its claim. *)

BackUp(which) ==
    /\ restores < MaxRestores
    /\ backups' = [backups EXCEPT ![which] = IF which = "here" THEN here ELSE there]
    /\ backups' # backups
    /\ UNCHANGED <<here, there, channel, flows, changes, faults, restores>>

Restore(which) ==
    /\ restores < MaxRestores /\ restores' = restores + 1
    /\ IF which = "here"
       THEN here' = [backups.here EXCEPT !.active = "none"] /\ channel' = [c \in Channels |-> Closed] /\ UNCHANGED there
       ELSE /\ there' = backups.there /\ UNCHANGED here
            /\ channel' = [c \in Channels |-> IF c = here.active \/ LeftOut = "ended" THEN channel[c] ELSE Closed]
    /\ UNCHANGED <<backups, flows, changes, faults>>

Works(c) == Open(c) \/ SynchroniseThere(c) \/ SynchroniseHere(c) \/ Read(c) \/ Bring(c) \/ TakeOff(c) \/ Close(c)
Next ==
    \/ Change \/ Refresh
    \/ \E c \in Channels : Works(c) \/ Crash(c)
    \/ \E which \in {"here", "there"} : BackUp(which) \/ Restore(which)
Spec == Init /\ [][Next]_vars

Bounded == there.received <= Highest /\ here.sent <= Highest  \* two channels that synchronise in turn would go on and on

----
Prefix(n) == [k \in 1..n |-> k]
OnceInOrder == restores = 0 => there.log = Prefix(Len(there.log))
NothingLost == restores = 0 => Range(there.log) \cup Ids(here.xmit) = 1..flows
(* Where nothing is under way, and a channel has looked, the proxy subscription is what is wanted *)
Quiet == /\ here.xmit = <<>> /\ ~here.refresh
         /\ \E c \in Channels : channel[c].open /\ there.claim = c /\ channel[c].batch = <<>> /\ ~channel[c].is_there
                                /\ channel[c].number = there.received
         /\ State(here, there) = "same"
ProxyIsWanted == Quiet => there.proxy = here.wants
SamePast == restores = 0 => \A c \in Channels : ~Unlike(c)  \* without a backup, nothing is told again
Promises == OnceInOrder /\ NothingLost /\ ProxyIsWanted /\ SamePast
=============================================================================
