import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import com.ibm.mq.jms.MQConnectionFactory;
import com.ibm.mq.jms.MQDestination;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.ArrayList;
import java.util.Hashtable;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import javax.jms.Connection;
import javax.jms.ConnectionConsumer;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.ServerSession;
import javax.jms.ServerSessionPool;
import javax.jms.Session;
import javax.jms.Topic;

/** Many threads on one shared connection, and calls with a buffer that is too small. Arguments: port, or port, seconds and SHARECNV. */
public class Sharing {
  interface Step {
    void run() throws Exception;
  }

  static final AtomicReference<Throwable> failure = new AtomicReference<>();

  static Thread started(Step step) {
    Thread thread =
        new Thread(
            () -> {
              try {
                step.run();
              } catch (Throwable error) {
                failure.compareAndSet(null, error);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  static void finish(List<Thread> threads) throws InterruptedException {
    for (Thread thread : threads) {
      thread.join(60_000);
    }
    threads.clear();
  }

  /** Sessions are made and closed while others of the connection receive messages of odd lengths. */
  static void comeAndGo(Connection connection) throws Exception {
    AtomicInteger made = new AtomicInteger();
    CountDownLatch heard = new CountDownLatch(20);
    Session receiving = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = receiving.createTemporaryQueue();
    receiving.createConsumer(queue).setMessageListener(message -> heard.countDown());
    List<Thread> threads = new ArrayList<>();
    threads.add(
        started(
            () -> {
              Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
              MessageProducer producer = session.createProducer(queue);
              for (int n = 0; made.get() < 30 && failure.get() == null || n < 20; n++) {
                producer.send(session.createTextMessage("odd".substring(0, n % 4)));
              }
            }));
    for (int t = 0; t < 2; t++) {
      threads.add(
          started(
              () -> {
                while (made.incrementAndGet() <= 30 && failure.get() == null) {
                  Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                  session.createProducer(session.createTopic("Sharing/Topic")).send(session.createMessage());
                  session.close();
                }
              }));
    }
    finish(threads);
    System.out.println("come and go " + failure.get() + ", heard " + heard.await(20, TimeUnit.SECONDS));
    receiving.close();
  }

  /** Puts without answers, more than wait at a time. */
  static void put(Connection connection) throws Exception {
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createTemporaryQueue();
    ((MQDestination) queue).setPutAsyncAllowed(WMQConstants.WMQ_PUT_ASYNC_ALLOWED_ENABLED);
    MessageProducer producer = session.createProducer(queue);
    for (int n = 0; n < 500; n++) {
      producer.send(session.createTextMessage("put " + n));
    }
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue);
    int got = 0;
    while (got < 500 && consumer.receive(5_000) != null) {
      got++;
    }
    session.commit();
    System.out.println("put and got " + got);
    session.close();
  }

  /** What another thread receives from is closed. */
  static void close(Connection connection, boolean all) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createTemporaryQueue());
    CountDownLatch receives = new CountDownLatch(1);
    Thread receiver =
        started(
            () -> {
              receives.countDown();
              System.out.println("received " + consumer.receive());
            });
    receives.await();
    Thread.sleep(300);
    if (all) {
      connection.close();
    } else {
      session.close();
    }
    receiver.join(20_000);
    System.out.println("closed " + !receiver.isAlive());
  }

  /** As in an application server: messages are seen first, then got by their tokens. */
  static void pool(Connection connection, String of) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Destination from = of.equals("queue") ? session.createTemporaryQueue() : session.createTopic("Sharing/Pool/" + of);
    CountDownLatch heard = new CountDownLatch(3);
    ServerSessionPool pool =
        () -> {
          Session worker = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
          worker.setMessageListener(message -> heard.countDown());
          return new ServerSession() {
            @Override
            public Session getSession() {
              return worker;
            }

            @Override
            public void start() throws JMSException {
              started(
                  () -> {
                    worker.run();
                    worker.close();
                  });
            }
          };
        };
    ConnectionConsumer seen =
        of.equals("durable")
            ? connection.createDurableConnectionConsumer((Topic) from, "pool", null, pool, 1)
            : connection.createConnectionConsumer(from, null, pool, 1);
    MessageProducer producer = session.createProducer(from);
    for (int n = 0; n < 3; n++) {
      producer.send(session.createTextMessage("pool " + n));
    }
    System.out.println("pool of a " + of + " " + heard.await(20, TimeUnit.SECONDS));
    // First: a pool that makes a session while its connection is closed waits for that, and that for the pool.
    seen.close();
  }

  /** In queued mode: each publication is acknowledged as the next one is got. */
  static void acknowledge(MQConnectionFactory factory) throws Exception {
    factory.setProviderVersion("6");
    factory.setBrokerVersion(WMQConstants.WMQ_BROKER_V1);
    factory.setSyncpointAllGets(true);
    Connection connection = factory.createConnection();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    CountDownLatch heard = new CountDownLatch(3);
    session.createConsumer(session.createTopic("Sharing/All")).setMessageListener(message -> heard.countDown());
    connection.start();
    Session sending = factory.createConnection().createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sending.createProducer(sending.createTopic("Sharing/All"));
    for (int n = 0; n < 3; n++) {
      producer.send(sending.createTextMessage("publication " + n));
    }
    System.out.println("acknowledged " + heard.await(20, TimeUnit.SECONDS));
    connection.close();
  }

  static void small(int port) throws Exception {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, port);
    properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager manager = new MQQueueManager("QM1", properties);
    MQQueue queue = manager.accessQueue("SHARING", CMQC.MQOO_OUTPUT | CMQC.MQOO_INPUT_SHARED);
    MQMessage message = new MQMessage();
    message.writeString("0123456789");
    queue.put(message);
    try {
      queue.get(new MQMessage(), new MQGetMessageOptions(), 4);
    } catch (MQException error) {
      System.out.println("small " + error.completionCode + " " + error.reasonCode);
    }
    message = new MQMessage();
    queue.get(message, new MQGetMessageOptions(), 10);
    System.out.println("large " + message.readStringOfByteLength(10));
    manager.disconnect();
  }

  /** The same for minutes, several connections at a time; each message is heard. */
  static void lasting(MQConnectionFactory factory, int seconds, int sharing) throws Exception {
    AtomicInteger made = new AtomicInteger();
    AtomicInteger sent = new AtomicInteger();
    AtomicInteger heard = new AtomicInteger();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    Connection connection = factory.createConnection();
    connection.start();
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < Math.max(2, Math.min(sharing / 3, 12)); t++) {
      Session receiving = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      Queue queue = receiving.createTemporaryQueue();
      receiving.createConsumer(queue).setMessageListener(message -> heard.incrementAndGet());
      threads.add(
          started(
              () -> {
                while (System.nanoTime() < end && failure.get() == null) {
                  Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                  MessageProducer producer = session.createProducer(queue);
                  for (int n = 0; n < 4; n++) {
                    producer.send(session.createTextMessage("odd".substring(0, n)));
                    sent.incrementAndGet();
                  }
                  session.createProducer(session.createTopic("Sharing/Topic")).send(session.createMessage());
                  session.close();
                  made.incrementAndGet();
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join(TimeUnit.SECONDS.toMillis(seconds + 60));
    }
    for (int n = 0; n < 600 && heard.get() < sent.get(); n++) {
      Thread.sleep(100);
    }
    String text = "%d sessions came and went, %d messages of %d were heard, %s%n";
    System.out.printf(text, made.get(), heard.get(), sent.get(), failure.get());
    System.exit(0);
  }

  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    MQConnectionFactory factory = new MQConnectionFactory();
    factory.setTransportType(WMQConstants.WMQ_CM_CLIENT);
    factory.setHostName("127.0.0.1");
    factory.setPort(port);
    factory.setChannel("APP.SVRCONN");
    factory.setQueueManager("QM1");
    if (arguments.length > 1) {
      lasting(factory, Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    }
    small(port);
    Connection connection = factory.createConnection();
    connection.start();
    comeAndGo(connection);
    put(connection);
    pool(connection, "queue");
    pool(connection, "topic");
    Connection named = factory.createConnection();
    named.setClientID("sharing");
    named.start();
    pool(named, "durable");
    named.close();
    named = factory.createConnection();
    named.setClientID("sharing");
    named.createSession(false, Session.AUTO_ACKNOWLEDGE).unsubscribe("pool");
    named.close();
    close(connection, false);
    close(connection, true);
    acknowledge(factory);
  }
}
