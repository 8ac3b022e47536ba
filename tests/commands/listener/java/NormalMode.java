import com.ibm.msg.client.wmq.WMQConstants;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;

/** What JMS programs do in normal mode alone: shared subscriptions, retained publications, transactions. Argument: port. */
public class NormalMode {
  static String text(MessageConsumer consumer, long wait) throws Exception {
    return PublishSubscribe.text(consumer.receive(wait));
  }

  public static void main(String[] arguments) throws Exception {
    Connection connection = PublishSubscribe.factory(arguments[0], "normal").createConnection();
    connection.setClientID("client2");
    connection.start();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Session second = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Topic topic = session.createTopic("topic://Sport/Tennis");
    MessageProducer producer = session.createProducer(topic);

    for (boolean durable : new boolean[] {false, true}) {
      MessageConsumer[] team = {
        durable ? session.createSharedDurableConsumer(topic, "team") : session.createSharedConsumer(topic, "team"),
        durable ? second.createSharedDurableConsumer(topic, "team") : second.createSharedConsumer(topic, "team"),
      };
      producer.send(session.createTextMessage("one"));
      producer.send(session.createTextMessage("two"));
      System.out.println("shared " + text(team[0], 10_000) + ", " + text(team[1], 10_000) + ", " + text(team[0], 200));
      team[0].close();
      producer.send(session.createTextMessage("three"));
      System.out.println("still " + text(team[1], 10_000));
      team[1].close();
    }
    session.unsubscribe("team");

    MessageConsumer durable = session.createDurableSubscriber(topic, "mine");
    try {
      second.createDurableSubscriber(topic, "mine");
    } catch (JMSException error) {
      System.out.println("in use " + ((com.ibm.mq.MQException) error.getLinkedException()).getReason());
    }
    durable.close();
    session.unsubscribe("mine");

    TextMessage retained = session.createTextMessage("retained");
    retained.setIntProperty(WMQConstants.JMS_IBM_RETAIN, WMQConstants.RETAIN_PUBLICATION);
    producer.send(retained);
    MessageConsumer late = session.createConsumer(session.createTopic("Sport/+"));
    System.out.println("late " + text(late, 10_000));
    late.close();

    Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
    BlockingQueue<String> heard = new ArrayBlockingQueue<>(10);
    second.createConsumer(second.createTopic("topic://Sport/Golf")).setMessageListener(
        message -> {
          try {
            heard.add(PublishSubscribe.text(message));
          } catch (Exception error) {
            heard.add(error.toString());
          }
        });
    MessageProducer inTransaction = transacted.createProducer(session.createTopic("topic://Sport/Golf"));
    inTransaction.send(transacted.createTextMessage("backed out"));
    transacted.rollback();
    inTransaction.send(transacted.createTextMessage("committed"));
    transacted.commit();
    System.out.println("heard " + heard.poll(10, TimeUnit.SECONDS));
    connection.close();
    System.out.println("closed");
  }
}
