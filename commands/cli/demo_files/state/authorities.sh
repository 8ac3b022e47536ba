setmqaut -m QM1 -n Sport -t queue -p scores +put +browse
setmqaut -m QM1 -n Business -t queue -p desk1 +put +browse
setmqaut -m QM1 -n SYSTEM.BROKER.DEFAULT.STREAM -t queue -g everyone +put +browse
setmqaut -m QM1 -n *.Q -t queue -p scores -p anne -p desk1 +put
SET AUTHREC PROFILE('SYSTEM.BASE.TOPIC') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB,SUB)
