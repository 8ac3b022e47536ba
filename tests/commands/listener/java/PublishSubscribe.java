import com.ibm.msg.client.jms.JmsConnectionFactory;
import com.ibm.msg.client.jms.JmsFactoryFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;

/**
 * Publish/subscribe of IBM MQ classes for JMS. Arguments: port; queued mode with BROKERVER V1 or V2, or normal mode; "die"
 * to be killed.
 */
public class PublishSubscribe {
  static String text(Message message) throws Exception {
    return message == null ? "nothing" : ((TextMessage) message).getText();
  }

  static JmsConnectionFactory factory(String port, String mode) throws Exception {
    JmsConnectionFactory factory =
        JmsFactoryFactory.getInstance(WMQConstants.WMQ_PROVIDER).createConnectionFactory();
    factory.setStringProperty(WMQConstants.WMQ_HOST_NAME, "127.0.0.1");
    factory.setIntProperty(WMQConstants.WMQ_PORT, Integer.parseInt(port));
    factory.setStringProperty(WMQConstants.WMQ_CHANNEL, "APP.SVRCONN");
    factory.setIntProperty(WMQConstants.WMQ_CONNECTION_MODE, WMQConstants.WMQ_CM_CLIENT);
    factory.setStringProperty(WMQConstants.WMQ_QUEUE_MANAGER, "QM1");
    if (!mode.equals("normal")) {
      boolean second = mode.equals("V2");
      factory.setStringProperty(WMQConstants.WMQ_PROVIDER_VERSION, "6");
      factory.setIntProperty(
          WMQConstants.WMQ_BROKER_VERSION, second ? WMQConstants.WMQ_BROKER_V2 : WMQConstants.WMQ_BROKER_V1);
      factory.setStringProperty(WMQConstants.WMQ_BROKER_QMGR, "QM1");
      if (second) {
        factory.setStringProperty(WMQConstants.WMQ_BROKER_PUBQ, "SYSTEM.BROKER.DEFAULT.STREAM");
      }
    }
    return factory;
  }

  public static void main(String[] arguments) throws Exception {
    Connection connection = factory(arguments[0], arguments[1]).createConnection();
    connection.setClientID("client1");
    connection.start();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Topic topic = session.createTopic("topic://Sport/Soccer");
    MessageConsumer plain = session.createConsumer(topic);
    if (arguments.length > 2) {
      System.out.println("subscribed");
      Thread.sleep(600_000);
    }
    MessageConsumer selecting = session.createConsumer(topic, "n > 1");
    MessageConsumer noLocal = session.createConsumer(topic, null, true);
    MessageConsumer durable = session.createDurableSubscriber(topic, "dur1");
    MessageProducer producer = session.createProducer(topic);
    for (int i = 0; i < 3; i++) {
      TextMessage message = session.createTextMessage("goal " + i);
      message.setIntProperty("n", i);
      producer.send(message);
    }
    for (int i = 0; i < 3; i++) {
      System.out.println("got " + text(plain.receive(10_000)));
    }
    System.out.println("selected " + text(selecting.receive(10_000)) + ", " + text(selecting.receive(300)));
    System.out.println("no local " + text(noLocal.receive(300)));
    for (int i = 0; i < 3; i++) {
      System.out.println("durable " + text(durable.receive(10_000)));
    }
    durable.close();
    plain.close();
    selecting.close();
    noLocal.close();
    producer.send(session.createTextMessage("while away"));
    durable = session.createDurableSubscriber(topic, "dur1");
    System.out.println("later " + text(durable.receive(10_000)));
    durable.close();
    session.unsubscribe("dur1");
    connection.close();
    System.out.println("closed");
  }
}
