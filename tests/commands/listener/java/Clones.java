import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.TreeSet;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;

/**
 * One of several programs that share a durable subscription with a selector and noLocal. Arguments: port, BROKERVER;
 * "take": it takes two messages in a transaction, and waits to be killed; "rest": on a line of stdin it publishes
 * on another connection, on the next on its own, and then it receives what is left and not local.
 */
public class Clones {
  static void publish(Connection connection, Topic topic, String name, int count) throws Exception {
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(topic);
    for (int i = 0; i < count; i++) {
      TextMessage message = session.createTextMessage(name + " " + i);
      message.setIntProperty("n", i);
      producer.send(message);
    }
    session.close();
  }

  public static void main(String[] arguments) throws Exception {
    JmsConnectionFactory factory = PublishSubscribe.factory(arguments[0], arguments[1]);
    factory.setIntProperty(WMQConstants.WMQ_CLONE_SUPPORT, WMQConstants.WMQ_CLONE_ENABLED);
    Connection connection = factory.createConnection();
    connection.setClientID("shop");
    connection.start();
    boolean takes = arguments[2].equals("take");
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    Topic topic = session.createTopic("topic://Sport/Soccer");
    MessageConsumer consumer = session.createDurableSubscriber(topic, "dur", "n > 0", true);
    System.out.println("subscribed");
    if (takes) {
      for (int i = 0; i < 2; i++) {
        System.out.println("took " + PublishSubscribe.text(consumer.receive(60_000)));
      }
      Thread.sleep(600_000);
    }
    System.in.read();
    Connection other = PublishSubscribe.factory(arguments[0], arguments[1]).createConnection();
    publish(other, topic, "goal", 6);
    other.close();
    System.out.println("published");
    System.in.read();
    publish(connection, topic, "own", 3);
    TreeSet<String> got = new TreeSet<>();
    for (Message message; got.size() < 5 && (message = consumer.receive(20_000)) != null; ) {
      got.add(PublishSubscribe.text(message));
    }
    System.out.println("got " + String.join(", ", got) + ", " + PublishSubscribe.text(consumer.receive(300)));
    session.commit();
    consumer.close();
    session.unsubscribe("dur");
    connection.close();
    System.out.println("closed");
  }
}
