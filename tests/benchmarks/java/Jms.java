import com.ibm.mq.jms.MQConnectionFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import com.rabbitmq.jms.admin.RMQConnectionFactory;
import java.util.concurrent.CyclicBarrier;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Clients that put messages and get them, each with a connection, a thread and a queue of its own. It waits for a line on
 * stdin before each step, and prints the seconds that it took. Arguments: broker, port, clients, messages of each, bytes,
 * persistence, how many have a commit; 0: none is transacted.
 */
public class Jms {
  static ConnectionFactory factory(String broker, int port) throws JMSException {
    if (broker.equals("artemis")) {
      return new ActiveMQConnectionFactory("tcp://127.0.0.1:" + port);
    }
    if (broker.equals("rabbitmq")) {
      RMQConnectionFactory factory = new RMQConnectionFactory();
      factory.setHost("127.0.0.1");
      factory.setPort(port);
      return factory;
    }
    MQConnectionFactory factory = new MQConnectionFactory();
    factory.setHostName("127.0.0.1");
    factory.setPort(port);
    factory.setChannel("APP.SVRCONN");
    factory.setQueueManager("QM1");
    factory.setTransportType(WMQConstants.WMQ_CM_CLIENT);
    return factory;
  }

  static void client(ConnectionFactory factory, int number, String[] of, CyclicBarrier barrier) throws Exception {
    int count = Integer.parseInt(of[3]), unit = Integer.parseInt(of[6]);
    byte[] data = new byte[Integer.parseInt(of[4])];
    try (Connection connection = factory.createConnection()) {
      Session session = connection.createSession(unit > 0, unit > 0 ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
      Queue queue = session.createQueue("LOAD." + number);
      MessageProducer producer = session.createProducer(queue);
      producer.setDeliveryMode(of[5].equals("1") ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
      for (int round = 0; round < 2; round++) {
        boolean measured = round == 1;
        int many = measured ? count : Math.min(count, 500);
        if (measured) {
          barrier.await();
          barrier.await();
        }
        for (int i = 0; i < many; i++) {
          BytesMessage message = session.createBytesMessage();
          message.writeBytes(data);
          producer.send(message);
          commit(session, unit, i, many);
        }
        MessageConsumer consumer = session.createConsumer(queue);
        if (measured) {
          barrier.await();
          barrier.await();
        }
        connection.start();
        for (int i = 0; i < many; i++) {
          if (consumer.receive(60_000) == null) {
            throw new IllegalStateException("a message is missing");
          }
          commit(session, unit, i, many);
        }
        if (measured) {
          barrier.await();
        }
        consumer.close();
        connection.stop();
      }
    }
  }

  static void commit(Session session, int unit, int i, int count) throws JMSException {
    if (unit > 0 && ((i + 1) % unit == 0 || i + 1 == count)) {
      session.commit();
    }
  }

  public static void main(String[] of) throws Exception {
    int clients = Integer.parseInt(of[2]);
    CyclicBarrier barrier = new CyclicBarrier(clients + 1);
    ConnectionFactory factory = factory(of[0], Integer.parseInt(of[1]));
    Thread[] threads = new Thread[clients];
    for (int i = 0; i < clients; i++) {
      int number = i;
      threads[i] =
          new Thread(
              () -> {
                try {
                  client(factory, number, of, barrier);
                } catch (Exception e) {
                  e.printStackTrace();
                  System.exit(1);
                }
              });
      threads[i].start();
    }
    barrier.await();
    for (int step = 0; step < 2; step++) {
      System.out.println("ready");
      System.in.read();
      long began = System.nanoTime();
      barrier.await();
      barrier.await();
      System.out.println((System.nanoTime() - began) / 1e9);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.exit(0);
  }
}
