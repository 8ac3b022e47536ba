import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.util.Enumeration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;

/** IBM MQ classes for JMS in their default mode: send, receive, browse, transactions, listeners. Argument: port. */
public class PointToPoint {
  static String text(Message message) throws Exception {
    return message == null ? "nothing" : ((TextMessage) message).getText();
  }

  public static void main(String[] arguments) throws Exception {
    JmsConnectionFactory factory =
        JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
    factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
    factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(arguments[0]));
    factory.setStringProperty(WMQConstants.WMQ_CHANNEL, "APP.SVRCONN");
    factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
    factory.setStringProperty(WMQConstants.WMQ_QUEUE_MANAGER, "QM1");
    Connection connection = factory.createConnection();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue("queue:///JMS.Q");
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 3; i++) {
      TextMessage message = session.createTextMessage("text " + i);
      message.setIntProperty("n", i);
      producer.send(message);
    }
    connection.start();
    QueueBrowser browser = session.createBrowser(queue);
    int count = 0;
    for (Enumeration<?> e = browser.getEnumeration(); e.hasMoreElements(); e.nextElement()) {
      count++;
    }
    browser.close();
    System.out.println("browsed " + count);
    MessageConsumer selecting = session.createConsumer(queue, "n = 1");
    System.out.println("selected " + text(selecting.receive(5000)));
    selecting.close();
    MessageConsumer consumer = session.createConsumer(queue);
    for (int i = 0; i < 2; i++) {
      System.out.println("got " + text(consumer.receive(5000)));
    }
    System.out.println("wait " + text(consumer.receive(300)) + ", no wait " + text(consumer.receiveNoWait()));
    consumer.close();

    Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
    transacted.createProducer(queue).send(transacted.createTextMessage("in a transaction"));
    MessageConsumer other = session.createConsumer(queue);
    System.out.println("uncommitted " + text(other.receive(300)));
    other.close();
    transacted.commit();
    MessageConsumer inside = transacted.createConsumer(queue);
    System.out.println("committed " + text(inside.receive(5000)));
    transacted.rollback();
    Message again = inside.receive(5000);
    System.out.println("again " + text(again) + ", redelivered " + again.getJMSRedelivered());
    transacted.commit();
    inside.close();

    CountDownLatch latch = new CountDownLatch(3);
    connection.stop();
    StringBuffer heard = new StringBuffer();
    session.createConsumer(queue).setMessageListener(
        message -> {
          try {
            heard.append(' ').append(text(message));
          } catch (Exception e) {
            heard.append(' ').append(e);
          }
          latch.countDown();
        });
    connection.start();
    Session sender = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer sends = sender.createProducer(queue);
    for (int i = 0; i < 3; i++) {
      sends.send(sender.createTextMessage("heard" + i));
    }
    System.out.println("listener " + latch.await(20, TimeUnit.SECONDS) + heard);
    Queue later = sender.createQueue("queue:///LATER.Q");
    MessageProducer delaying = sender.createProducer(later);
    delaying.setDeliveryDelay(500);
    TextMessage delayed = sender.createTextMessage("delayed");
    long begun = System.currentTimeMillis();
    delaying.send(delayed);
    Message late = sender.createConsumer(later).receive(20000);
    boolean due = late.getJMSDeliveryTime() >= begun + 500 && late.getJMSDeliveryTime() == delayed.getJMSDeliveryTime();
    System.out.println(text(late) + ", due " + due + ", " + (System.currentTimeMillis() >= begun + 500));
    TemporaryQueue temporary = sender.createTemporaryQueue();
    System.out.println("temporary " + temporary.getQueueName().startsWith("queue://QM1/AMQ."));
    connection.close();
    System.out.println("closed");
  }
}
