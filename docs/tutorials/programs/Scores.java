/* The scoreboard in Java, with IBM MQ classes for JMS in migration mode: they put the same commands as scores.c.
 *
 *     java Scores 'localhost(1414)' follow                receives every score until Ctrl-C
 *     java Scores 'localhost(1414)' publish TEAM SCORE    publishes a score
 *
 * javac -cp com.ibm.mq.allclient.jar:javax.jms-api.jar Scores.java
 */
import com.ibm.mq.jms.MQTopicConnectionFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import javax.jms.JMSException;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.TopicConnection;
import javax.jms.TopicPublisher;
import javax.jms.TopicSession;
import javax.jms.TopicSubscriber;

public class Scores {
    static TopicConnection connect(String where) throws JMSException {
        MQTopicConnectionFactory factory = new MQTopicConnectionFactory();
        factory.setTransportType(WMQConstants.WMQ_CM_CLIENT);   // as an MQ client, over TCP
        factory.setConnectionNameList(where);
        factory.setChannel("APP.SVRCONN");
        factory.setAppName("Scores");
        factory.setProviderVersion("6");                        // migration mode: the queued interface
        factory.setBrokerVersion(WMQConstants.WMQ_BROKER_V2);   // MQRFH2; WMQ_BROKER_V1 puts MQRFH
        return factory.createTopicConnection();
    }

    static void follow(TopicConnection connection, TopicSession session) throws JMSException {
        TopicSubscriber scores = session.createSubscriber(session.createTopic("topic://Sport/Soccer/#"));
        connection.start();
        for (;;)
            System.out.println("score: " + ((TextMessage) scores.receive()).getText());
    }

    static void publish(TopicSession session, String team, String score) throws JMSException {
        TopicPublisher publisher = session.createPublisher(session.createTopic("topic://Sport/Soccer/" + team));
        publisher.publish(session.createTextMessage(score));
    }

    public static void main(String[] words) throws JMSException {
        TopicConnection connection = connect(words[0]);
        TopicSession session = connection.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
        if (words[1].equals("follow"))
            follow(connection, session);
        else
            publish(session, words[2], words[3]);
        connection.close();
    }
}
