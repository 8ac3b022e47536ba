import java.util.ArrayList;
import java.util.List;
import javax.jms.Connection;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.Topic;

/** Programs in queued mode V1, V2 and in normal mode: each publishes, each gets all. Argument: port. */
public class Reach {
  public static void main(String[] arguments) throws Exception {
    String[] modes = {"V1", "V2", "normal"};
    List<Connection> connections = new ArrayList<>();
    List<Session> sessions = new ArrayList<>();
    List<MessageConsumer> consumers = new ArrayList<>();
    for (String mode : modes) {
      Connection connection = PublishSubscribe.factory(arguments[0], mode).createConnection();
      connection.start();
      connections.add(connection);
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      sessions.add(session);
      consumers.add(session.createConsumer(session.createTopic("topic://Sport/Soccer")));
    }
    for (int i = 0; i < modes.length; i++) {
      Session session = sessions.get(i);
      Topic topic = session.createTopic("topic://Sport/Soccer");
      session.createProducer(topic).send(session.createTextMessage("from " + modes[i]));
      for (int j = 0; j < modes.length; j++) {
        System.out.println(modes[j] + " got " + PublishSubscribe.text(consumers.get(j).receive(20_000)));
      }
    }
    for (Connection connection : connections) {
      connection.close();
    }
    System.out.println("closed");
  }
}
