import com.ibm.mq.MQEnvironment;
import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Arrays;
import java.util.Hashtable;
import java.util.concurrent.CyclicBarrier;

/**
 * Clients that put messages and get them, each on a connection and a thread of its own. It waits for a line on stdin
 * before each step, and prints the seconds that it took. Arguments: port, clients, messages of each, bytes,
 * persistence; a last argument "reply" for one that asks and another that answers: then microseconds of all round trips;
 * or how many calls have a commit, all under syncpoint.
 */
public class Load {
  static int port, bytes, persistence, unit;

  static MQQueueManager connected() throws MQException {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, port);
    properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    return new MQQueueManager("QM1", properties);
  }

  static void put(MQQueue queue) throws Exception {
    MQMessage message = new MQMessage();
    message.persistence = persistence;
    message.write(new byte[bytes]);
    MQPutMessageOptions options = new MQPutMessageOptions();
    options.options = unit > 0 ? CMQC.MQPMO_SYNCPOINT : CMQC.MQPMO_NO_SYNCPOINT;
    queue.put(message, options);
  }

  static void get(MQQueue queue) throws Exception {
    MQGetMessageOptions options = new MQGetMessageOptions();
    options.options = CMQC.MQGMO_WAIT | (unit > 0 ? CMQC.MQGMO_SYNCPOINT : CMQC.MQGMO_NO_SYNCPOINT);
    options.waitInterval = 60_000;
    queue.get(new MQMessage(), options);
  }

  static void commit(MQQueueManager manager, int i, int count) throws Exception {
    if (unit > 0 && ((i + 1) % unit == 0 || i + 1 == count)) {
      manager.commit();
    }
  }

  static void client(int count, CyclicBarrier barrier) throws Exception {
    MQQueueManager manager = connected();
    MQQueue queue = manager.accessQueue("LOAD", CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_OUTPUT);
    for (int i = 0; i < Math.min(200, count); i++) {
      put(queue);
      commit(manager, 0, 1);
      get(queue);
      commit(manager, 0, 1);
    }
    barrier.await();
    barrier.await();
    for (int i = 0; i < count; i++) {
      put(queue);
      commit(manager, i, count);
    }
    barrier.await();
    barrier.await();
    for (int i = 0; i < count; i++) {
      get(queue);
      commit(manager, i, count);
    }
    barrier.await();
    manager.disconnect();
  }

  static void run(Body body) {
    Thread thread =
        new Thread(
            () -> {
              try {
                body.run();
              } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  interface Body {
    void run() throws Exception;
  }

  static void load(int clients, int count) throws Exception {
    CyclicBarrier barrier = new CyclicBarrier(clients + 1);
    for (int i = 0; i < clients; i++) {
      run(() -> client(count, barrier));
    }
    for (int i = 0; i < 2; i++) {
      if (i == 0) {
        barrier.await();
      }
      System.out.println("ready");
      System.in.read();
      long began = System.nanoTime();
      barrier.await();
      barrier.await();
      System.out.println((System.nanoTime() - began) / 1e9);
    }
  }

  static void reply(int count) throws Exception {
    run(
        () -> {
          MQQueue in = connected().accessQueue("ASK", CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_OUTPUT);
          MQQueue out = connected().accessQueue("ANSWER", CMQC.MQOO_OUTPUT);
          while (true) {
            get(in);
            put(out);
          }
        });
    MQQueueManager manager = connected();
    MQQueue ask = manager.accessQueue("ASK", CMQC.MQOO_OUTPUT);
    MQQueue answer = manager.accessQueue("ANSWER", CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_OUTPUT);
    int warm = Math.min(200, count);
    long[] took = new long[count];
    for (int i = -warm; i < count; i++) {
      if (i == 0) {
        System.out.println("ready");
        System.in.read();
      }
      long began = System.nanoTime();
      put(ask);
      get(answer);
      if (i >= 0) {
        took[i] = (System.nanoTime() - began) / 1000;
      }
    }
    Arrays.sort(took);
    System.out.println(took[count / 2] + " " + took[count * 99 / 100]);
  }

  public static void main(String[] arguments) throws Exception {
    port = Integer.parseInt(arguments[0]);
    bytes = Integer.parseInt(arguments[3]);
    persistence = Integer.parseInt(arguments[4]);
    MQEnvironment.sharingConversations = 1;
    if (arguments.length > 5 && arguments[5].equals("reply")) {
      reply(Integer.parseInt(arguments[2]));
    } else {
      unit = arguments.length > 5 ? Integer.parseInt(arguments[5]) : 0;
      load(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    }
    System.exit(0);
  }
}
